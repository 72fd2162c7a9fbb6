//! On the roof, `eprintln!` and `eprint!` are those of [`rubus_command::messages`].

macro_rules! eprintln {
    ($($words:tt)*) => {
        ::rubus_command::message!($($words)*)
    };
}

macro_rules! eprint {
    ($($words:tt)*) => {
        ::rubus_command::prompt!($($words)*)
    };
}
