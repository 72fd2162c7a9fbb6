//! Scripts for the shell at the other end: what ssh is given as a command is one text, which the user's login shell over there
//! takes apart.

use rubus_draw::quote::quote;

/// A command that runs `script` in a POSIX shell with `arguments` as `$1`, `$2`, …, whatever the login
/// shell is.
pub fn run_script(script: &str, arguments: &[&str]) -> String {
    let mut command = format!("exec sh -c {} rubus", quote(script));
    for argument in arguments {
        command.push(' ');
        command.push_str(&quote(argument));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_gets_its_arguments_as_words() {
        assert_eq!(
            run_script("echo \"$1\"", &["a b", "-x"]),
            "exec sh -c 'echo \"$1\"' rubus 'a b' -x"
        );
    }
}
