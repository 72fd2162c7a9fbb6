//! Every file of the fuzzers' corpus, and what becomes of it with a few bytes changed, goes through
//! the doors that the fuzzers try (`fuzz/README.md`).

mod entries;
#[path = "corpus/files.rs"]
mod files;

#[test]
fn every_file_of_the_corpus_goes_through_its_door() {
    files::take_every_file(&entries::ALL);
}

#[test]
fn every_door_stands_changed_files_of_the_corpus() {
    files::stand_changed_files(&entries::ALL);
}
