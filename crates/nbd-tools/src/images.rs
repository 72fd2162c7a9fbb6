//! Names of disk images that are served.

use std::ffi::OsStr;
use std::path::Path;

/// What names of images in a directory end with, behind the last full stop.
const ENDINGS: [&str; 3] = ["img", "raw", "iso"];

/// Whether a file is called like an image.
pub fn is_called_so(path: &Path) -> bool {
    let ending = path.extension().and_then(OsStr::to_str);
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// What clients call an image that has no other name: its own without the ending of one.
pub fn name_of(image: &Path) -> &OsStr {
    let name = if is_called_so(image) { image.file_stem() } else { image.file_name() };
    name.unwrap_or(image.as_os_str())
}
