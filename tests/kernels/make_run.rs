//! What `make run` does: the built-in plan, as root and as a plain user.

use crate::machine::Machine;
use crate::steps::{Step, has_default_mask};

pub(crate) const STEP: Step = Step {
    name: "`make run`",
    looks_at: "the built-in plan in short windows (4 rounds of 0.2 s), hosts on cores of their own: every sample is \
               valid that had a processor, \
               verdicts are printed; on 6.1 as root and as a plain user, who cannot steer there what hosts receive: the \
               record and the report say so; elsewhere as a plain user",
    needs: &["vxlan", "tbf"],
    run,
};

const SHORT: &str = "wirecost plans jumbo-or-not | \
                     sed 's/^repeat: .*/repeat: { rounds: 4, seconds: 0.2, warmup: 0.1, worth: 5% }/' >/tmp/short.yaml";

fn run(machine: &mut Machine) {
    let steers = has_default_mask(machine);
    let plain = "setpriv --reuid 65534 --regid 65534 --clear-groups ";
    // Who can steer anyway is measured as root is.
    let users = if steers {
        vec![(plain, true)]
    } else {
        vec![("", true), (plain, false)]
    };
    for (user, steered) in users {
        let run = format!(
            "{SHORT}; rm -rf /tmp/run; {user}wirecost run /tmp/short.yaml --out /tmp/run --seed 1"
        );
        let shown = machine.sh(180, &run).fine();
        // The threads of an emulator move from core to core.
        let trust = shown.contains("Trust: ") || shown.starts_with("Doubtful: ");
        assert!(trust, "{shown}");
        assert_eq!(shown.contains("is not steered"), !steered, "{shown}");
        // The record itself is long for a serial line.
        let mut count = |what: &str| -> u32 {
            let told = machine.sh(30, &format!("{what} | wc -l")).fine();
            told.trim().parse().expect("a number")
        };
        let samples = count("cat /tmp/run/samples.jsonl");
        let valid = count("grep '\"invalid\":null' /tmp/run/samples.jsonl");
        // A processor that is emulated may have no turn for the whole of a window.
        let invalid = "grep -v '\"invalid\":null' /tmp/run/samples.jsonl";
        let idle = count(&format!(
            "{invalid} | grep 'nothing arrived within the window'"
        ));
        assert_eq!((samples, valid + idle), (32, 32), "{shown}");
        assert!(idle <= 4, "{shown}");
        let not_steered = count("grep '\"not_steered\":true' /tmp/run/samples.jsonl");
        assert_eq!(not_steered, if steered { 0 } else { samples });
        let report = "wirecost report /tmp/run --json | grep -oE '\"verdict\": \"[a-z_]*\"'";
        let judged = count(report);
        let spoken = count(&format!(
            "{report} | grep -E 'pays|costs|makes_no|gains|loses'"
        ));
        println!(
            "{}: {judged} verdicts, {spoken} of them not in doubt; steered: {steered}",
            machine.release
        );
        // How many figures of an emulated processor are beyond doubt says nothing.
        assert!(judged > 0, "{shown}");
    }
}
