//! Results, and everything that is made of them: every format, the drop-in's tables, comparisons, advice.

use std::fs;

use anyhow::{Context, Result};
use memgauge_analysis::advice::{Model, advise};
use memgauge_analysis::comparison::{ComparisonOptions, compare};
use memgauge_model::result::Report;
use memgauge_model::units::Bytes;
use memgauge_render::mlc::{self, Wording};
use memgauge_render::{Appearance, Document, Format, PlannedRun, mlc_scan, read};

use crate::folders::project_folder;

/// The function that is called with each input.
pub(super) type Run = Box<dyn Fn(&[u8])>;

/// Saved results. A small part of the mutations of a large file hits something that is read, so large ones are left out.
pub(super) fn results() -> Result<Vec<Vec<u8>>> {
    let folder = project_folder().join("tests/results");
    let mut files: Vec<_> = fs::read_dir(&folder)?.collect::<std::io::Result<Vec<_>>>()?.into_iter().map(|entry| entry.path()).collect();
    files.sort();
    files.push(project_folder().join("crates/render/tests/all/samples/version-1.json"));
    let mut all: Vec<Vec<u8>> = files.iter().map(fs::read).collect::<std::io::Result<_>>()?;
    all.retain(|bytes| bytes.len() <= 128 << 10);
    Ok(all)
}

/// The saved result of a small machine.
pub(super) fn saved() -> Result<Report> {
    let path = project_folder().join("tests/results/vm-2-cpus.json");
    read(&fs::read(&path)?).with_context(|| path.display().to_string())
}

/// Shows a result in every format.
pub(super) fn formats(bytes: &[u8]) {
    let Ok(report) = read(bytes) else { return };
    every_format(&report);
}

/// Shows a result as short and as narrow as can be asked for.
pub(super) fn lines(bytes: &[u8]) {
    let Ok(report) = read(bytes) else { return };
    let _ = report.render(Format::TEXT, &Appearance { one_line: true, ..Appearance::default() });
    for width in [1, 40] {
        let _ = report.render(Format::TEXT, &Appearance { width, colour: true, verbose: false, ..Appearance::default() });
    }
    if let Some(plan) = &report.plan {
        PlannedRun { plan, machine: &report.machine }.line(&Appearance::default());
    }
}

/// All of the drop-in's tables, with every wording.
pub(super) fn drop_in(bytes: &[u8]) {
    let Ok(report) = read(bytes) else { return };
    mlc::all_sections(&report);
    let plain = Wording::default();
    let full = Wording {
        one_thread_per_core: true,
        large_pages: true,
        searched: true,
        only_reads: true,
        more_mixes: true,
        per_thread: true,
        bucket_log2: Some(3),
    };
    for wording in [plain, full] {
        mlc::peak(&report, wording);
        mlc::bandwidth_matrix(&report, wording);
        mlc::loaded(&report, wording);
        mlc::unloaded(&report, wording, &[0, 300]);
    }
    mlc::latency_matrix(&report);
    mlc::latency_per_cpu(&report);
    mlc::idle_latency(&report);
    mlc::cache_to_cache(&report);
    mlc::one_transfer(&report);
    mlc_scan(&report);
}

/// Shows a document in all formats that it has, and in one line.
pub(super) fn every_format<D: Document>(document: &D) {
    let appearance = Appearance { width: 80, colour: true, ..Appearance::default() };
    document.line(&appearance);
    for format in D::FORMATS {
        let _ = document.render(*format, &appearance);
    }
}

/// Compares a saved result with one, on either side, in every format.
pub(super) fn compared() -> Result<Run> {
    let saved = [saved()?];
    Ok(Box::new(move |bytes| {
        let Ok(report) = read(bytes) else { return };
        // Two runs of a side have a spread between them.
        let own = [report.clone(), report];
        for (before, after) in [(&saved[..], &own[..]), (&own[..1], &saved[..])] {
            let found = compare(("before", before), ("after", after), ComparisonOptions::default());
            every_format(&found);
        }
    }))
}

/// Advises on a result, alone and beside a saved one.
pub(super) fn advised() -> Result<Run> {
    let saved = saved()?;
    let models = [Model { name: None, bytes: Bytes::mib(4096) }];
    Ok(Box::new(move |bytes| {
        let Ok(report) = read(bytes) else { return };
        for results in [&[("x.json", &report)][..], &[("x.json", &report), ("y.json", &saved)]] {
            for seen_tokens_per_s in [None, Some(6.1)] {
                every_format(&advise(results, &models, seen_tokens_per_s));
            }
        }
    }))
}
