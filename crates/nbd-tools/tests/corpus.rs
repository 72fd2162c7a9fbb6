//! Every journal of the fuzzers' corpus, and what becomes of it with a few bytes changed, goes through
//! the door that the fuzzer tries (`fuzz/README.md`).

mod entries;
#[path = "../../nbd/tests/corpus/files.rs"]
mod files;

const DOOR: files::Door<'static> = ("copy_journal", entries::copy_journal);

#[test]
fn every_file_of_the_corpus_goes_through_its_door() {
    files::take_every_file(&[DOOR]);
}

#[test]
fn every_door_stands_changed_files_of_the_corpus() {
    files::stand_changed_files(&[DOOR]);
}
