//! Access to the options of a task in tests.

/// The options of this kind of task.
macro_rules! options {
    ($task:expr, $kind:ident) => {
        match $task {
            memgauge_model::spec::Task::$kind(options) => options,
            other => panic!("{other:?}"),
        }
    };
}
