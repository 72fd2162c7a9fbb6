//! Runs of memory and of the processor as a text.

use rubus_vocabulary::memory::End;

use super::render;
use rubus_draw::style::Style;
use rubus_draw::text::width;
use rubus_verdict::text::checkup::Detail;

#[test]
fn a_board_with_zswap_and_without() {
    let run = rubus_fixtures::memory_run();
    let shown = render(&run, &rubus_verdict::verdict::verdict(&run), Detail::All, Style::PLAIN);
    for line in shown.lines() {
        assert!(width(line) <= rubus_draw::layout::COLUMNS, "{line}");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_whole_machine_whose_kernel_has_no_groups() {
    let mut run = rubus_fixtures::memory_run();
    let rubus_vocabulary::result::Figures::Memory(memory) = &mut run.figures else {
        panic!("it is of memory");
    };
    memory.bandwidth.clear();
    memory.chase.clear();
    memory.pressure.truncate(1);
    let pressure = &mut memory.pressure[0];
    pressure.group.version = None;
    pressure.group.memory_bytes = 636 << 20;
    pressure.group.reserve_bytes = Some(64 << 20);
    pressure.rungs.truncate(3);
    for found in &mut pressure.carries {
        found.within = Some(1.4);
        found.beyond = None;
        found.because = Some(End::Unsafe { why: "the machine did not answer for 5.5 s".into() });
    }
    pressure.rungs[1].phases.clear();
    pressure.rungs[1].ended_by = pressure.carries[0].because.clone();
    let shown = render(&run, &rubus_verdict::verdict::verdict(&run), Detail::All, Style::PLAIN);
    for line in shown.lines() {
        assert!(width(line) <= rubus_draw::layout::COLUMNS, "{line}");
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_board_of_four_cores() {
    let run = rubus_fixtures::processor_run();
    let shown = render(&run, &rubus_verdict::verdict::verdict(&run), Detail::All, Style::PLAIN);
    for line in shown.lines() {
        assert!(width(line) <= rubus_draw::layout::COLUMNS, "{line}");
    }
    insta::assert_snapshot!(shown);
}
