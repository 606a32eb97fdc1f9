//! Bandwidth: loaders alone, with the kernels that short trials found fastest.

use memgauge_core::counters::WorkUnit;
use memgauge_core::experiment::{Coordinates, Experiment as ExperimentKind, Metric};
use memgauge_core::plan::{Loader, Traffic};

use super::loaders::LoaderGroup;
use super::sampling::{Experiment, Vary};
use super::{rfo, trials};
use crate::error::CellError;
use crate::recorder::NewResult;
use crate::session::Session;

pub(crate) fn measure(
    session: &mut Session<'_>,
    kind: ExperimentKind,
    at: &Coordinates,
    loaders: &[Loader],
    traffic: &Traffic,
    delay: u32,
) -> Result<(), CellError> {
    let group = LoaderGroup::prepare(session, loaders, traffic)?;
    let experiment = Experiment { probe: None, loaders: Some(&group), vary: Vary::Nothing };
    experiment.watch(session)?;
    let (chosen, loads) = session.unwatched(|session| {
        let chosen = trials::choose_kernels(session, &group)?;
        rfo::calibrate(session, &group, loaders, traffic)?;
        let loads = group.loads(&chosen, delay)?;
        Ok::<_, CellError>((chosen, loads))
    })?;
    let series = experiment.series(None, loads, None);
    let series = experiment.sample_point(session, series, None)?;
    let estimate = series.samples.estimate_with_drift(0, session.budget.stop.relative_half_width);
    let mut evidence = series.load_evidence(session, &group, &chosen);
    let (rfo, in_memory) = (session.calibration.rfo(), group.memory_sized(session.context.machine));
    evidence.traffic = estimate.value.map(|gbs| series.load_totals.traffic(gbs, rfo, in_memory));
    series.unwatch(session, &mut evidence);
    let certain = group.certain(session.context.machine, &chosen);
    let counters = session.counted(&series.load_totals.counters, WorkUnit::Line, certain);
    let samples = Some(series.samples.keep(0));
    session.record(kind, NewResult { counters, samples, ..NewResult::new(at.clone(), Metric::Bandwidth, estimate, evidence) });
    Ok(())
}
