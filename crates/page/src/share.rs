//! What holds a share of a file server back: the stages on the way to it, and what else there is to know.

use maud::{Markup, html};
use rubus_draw::words::roughly;
use rubus_verdict::nas::{LOAD, NasVerdict, stage_name};

use super::glued;

/// The stages with their seconds, the narrowest first, and the notes.
pub fn stages(nas: &NasVerdict) -> Markup {
    html! {
        section aria-labelledby="way-to-the-nas" {
            h2 id="way-to-the-nas" { "On the way to the NAS" }
            div class="scroll" role="region" aria-label="On the way to the NAS" tabindex="0" {
                table class="figures" role="table" {
                    caption { span { (LOAD) } }
                    thead role="rowgroup" { tr role="row" {
                        th scope="col" role="columnheader" { "stage" }
                        th scope="col" role="columnheader" class="n" { "waits" }
                    } }
                    tbody role="rowgroup" {
                        @for stage in &nas.stages {
                            @let is_narrow = nas.narrow == Some(stage.stage);
                            tr role="row" class=[is_narrow.then_some("narrowest")] {
                                th scope="row" role="rowheader" {
                                    (stage_name(stage.stage))
                                    @if is_narrow { " " span class="badge" { "narrowest" } }
                                }
                                td class="n" role="cell" data-label="waits" { (roughly(stage.seconds)) }
                            }
                        }
                    }
                }
            }
            @for note in &nas.notes { p { (glued(note)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::render;
    use rubus_fixtures::{nas_run, slow_sd_card_run};
    use rubus_verdict::verdict::verdict;

    #[test]
    fn a_share_has_its_stages_in_place_of_a_disk_s_pipes() {
        let run = nas_run();
        let found = verdict(&run);
        let page = render(&run, &found);
        assert!(page.contains("On the way to the NAS") && !page.contains(">The pipes<"));
        for stage in &found.nas.as_ref().expect("a share").stages {
            assert!(page.contains(rubus_verdict::nas::stage_name(stage.stage)), "{stage:?}");
        }
        let disk = slow_sd_card_run();
        let page = render(&disk, &verdict(&disk));
        assert!(!page.contains("On the way to the NAS") && page.contains("The pipes"));
    }
}
