//! Tables as Parquet files: columns that may lack values, compressed with Snappy, which every reader knows.

use std::cell::Cell;
use std::fs::File;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Arc, Once};

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::columns::{Kind, Value};
use super::manifest::create_anew;

/// Rows of a row group: what a reader holds of a column at a time.
const GROUP: usize = 1 << 18;
/// Two levels: a value is there, or it is not.
const PRESENT: i16 = 1;

/// Writes a table with these columns. `value` is that of a row and a column. Returns the file, which is not synchronised yet.
pub(super) fn write<'a>(
    path: &Path,
    columns: &[(&str, Kind)],
    rows: usize,
    value: impl Fn(usize, usize) -> &'a Value,
) -> Result<File, ParquetError> {
    let fields = columns.iter().map(|&(name, kind)| field(name, kind).map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("memgauge").with_fields(fields).build()?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let file = create_anew(path)?;
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
    for begin in (0..rows).step_by(GROUP) {
        let group = begin..rows.min(begin + GROUP);
        let mut next = writer.next_row_group()?;
        for (column, (_, kind)) in columns.iter().enumerate() {
            let values = group.clone().map(|row| value(row, column));
            match kind {
                Kind::Text => {
                    write_column::<ByteArrayType>(&mut next, values, |v| if let Value::Text(t) = v { Some(t.clone()) } else { None })
                }
                Kind::Number => write_column::<DoubleType>(&mut next, values, |v| if let Value::Number(n) = v { Some(*n) } else { None }),
                Kind::Truth => write_column::<BoolType>(&mut next, values, |v| if let Value::Truth(t) = v { Some(*t) } else { None }),
                Kind::Integer | Kind::Moment => {
                    write_column::<Int64Type>(&mut next, values, |v| if let Value::Integer(n) = v { Some(*n) } else { None })
                }
            }?;
        }
        next.close()?;
    }
    writer.into_inner()
}

fn field(name: &str, kind: Kind) -> Result<Type, ParquetError> {
    let (physical, logical) = match kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Integer => (Physical::INT64, None),
        Kind::Number => (Physical::DOUBLE, None),
        Kind::Truth => (Physical::BOOLEAN, None),
        Kind::Moment => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
    };
    Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build()
}

fn write_column<'a, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: impl Iterator<Item = &'a Value>,
    get: impl Fn(&Value) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let (mut present, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        let value = get(value);
        levels.push(if value.is_some() { PRESENT } else { 0 });
        present.extend(value);
    }
    let mut column = group.next_column()?.ok_or_else(|| ParquetError::General("the schema has too few columns".into()))?;
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    column.close()
}

thread_local! {
    /// Whether this thread reads a file, so that a panic is an error of the file.
    static READS: Cell<bool> = const { Cell::new(false) };
}

/// Reads with the library, which panics at some files that somebody has damaged on purpose: nothing is printed then, and the panic is an error
/// as any other.
fn without_panics<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |why| {
            if !READS.get() {
                others(why);
            }
        }));
    });
    READS.set(true);
    // After a panic, a column that was read in part is dropped here, and the next column gets a new reader.
    let outcome = panic::catch_unwind(AssertUnwindSafe(read));
    READS.set(false);
    outcome.unwrap_or_else(|_| Err(ParquetError::General("its pages contradict each other".into())))
}

/// A table to read.
pub(super) struct Table {
    reader: SerializedFileReader<File>,
}

impl Table {
    pub(super) fn open(file: File) -> Result<Self, ParquetError> {
        Ok(Self { reader: without_panics(|| SerializedFileReader::new(file))? })
    }

    /// How many row groups it has.
    pub(super) fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    fn index(&self, name: &str) -> Option<usize> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        (0..schema.num_columns()).find(|&i| schema.column(i).name() == name)
    }

    /// Whether it has a column: files of older programs lack some.
    pub(super) fn has(&self, name: &str) -> bool {
        self.index(name).is_some()
    }

    /// A column of a row group, by row: texts are `ByteArrayType`.
    pub(super) fn column<T: DataType>(&self, group: usize, name: &str) -> Result<Vec<Option<T::T>>, ParquetError> {
        without_panics(|| self.decode::<T>(group, name))
    }

    fn decode<T: DataType>(&self, group: usize, name: &str) -> Result<Vec<Option<T::T>>, ParquetError> {
        let index = self.index(name).ok_or_else(|| ParquetError::General(format!("it has no column {name}")))?;
        let group = self.reader.get_row_group(group)?;
        let schema = group.metadata().schema_descr_ptr();
        let column = schema.column(index);
        if column.physical_type() != T::get_physical_type() || column.max_def_level() != PRESENT || column.max_rep_level() != 0 {
            return Err(ParquetError::General(format!("its column {name} is of another type")));
        }
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or_default();
        let mut reader = get_typed_column_reader::<T>(group.get_column_reader(index)?);
        let (mut present, mut levels) = (Vec::new(), Vec::new());
        while levels.len() < rows {
            let (records, ..) = reader.read_records(rows - levels.len(), Some(&mut levels), None, &mut present)?;
            if records == 0 {
                return Err(ParquetError::EOF(format!("its column {name} ends after {} of {rows} rows", levels.len())));
            }
        }
        let mut present = present.into_iter();
        Ok(levels.into_iter().map(|level| if level == PRESENT { present.next() } else { None }).collect())
    }

    /// A column of texts, by row.
    pub(super) fn texts(&self, group: usize, name: &str) -> Result<Vec<Option<ByteArray>>, ParquetError> {
        self.column::<ByteArrayType>(group, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_library_is_an_error() {
        let failed = without_panics(|| -> Result<(), ParquetError> { panic!("as the library does") });
        assert!(failed.unwrap_err().to_string().contains("contradict"));
        assert!(!READS.get(), "later panics are printed");
        assert_eq!(without_panics(|| Ok(7)).unwrap(), 7);
    }

    #[test]
    fn a_dictionary_of_fewer_texts_than_it_says_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let value = Value::Text(ByteArray::from("0123456789"));
        write(&path, &[("host", Kind::Text)], 3, |_, _| &value).unwrap();
        let column = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Table::open(File::open(&path).unwrap())?.texts(0, "host")
        };
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(column(&whole).unwrap().len(), 3);
        // The length of the only text, behind the header of its page: the page is then too short for it.
        let length = whole.windows(4).position(|bytes| bytes == 10u32.to_le_bytes()).unwrap();
        for claimed in [11u8, 200, 255] {
            let mut damaged = whole.clone();
            damaged[length] = claimed;
            assert!(column(&damaged).is_err(), "{claimed}");
        }
    }
}
