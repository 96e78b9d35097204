use wirecost_answer::diagnosis::Limit;

use super::super::code;
use super::*;
use crate::exit;

#[test]
fn an_address_with_spaces_is_one_word_of_a_command() {
    assert_eq!(shell_word("netns:b=10.0.0.2"), "netns:b=10.0.0.2");
    let quoted = shell_word("exec:sh -c 'exec sh'");
    assert_eq!(quoted, r"'exec:sh -c '\''exec sh'\'''");
}

fn found(tried: Vec<TriedChange>) -> DiagnosisResult {
    DiagnosisResult {
        hosts: ["local", "netns:b"].map(str::to_owned),
        gbit_per_s: Some(1.0),
        now: Diagnosis {
            limit: Limit::Unknown,
            evidence: "nothing is full".to_owned(),
            drops: Vec::new(),
        },
        findings: Vec::new(),
        tried,
        compared: Vec::new(),
        not_tried: Vec::new(),
        check_s: 4.0,
        time_s: 180.0,
        changed: true,
        complete: true,
        record: "run".into(),
    }
}

fn unknown(switch: &str, reason: Option<&str>) -> TriedChange {
    TriedChange {
        switch: switch.to_owned(),
        judged: ChangeVerdict::NotKnown,
        ratio: None,
        low: None,
        high: None,
        reason: reason.map(str::to_owned),
        commands: Vec::new(),
    }
}

fn known(switch: &str, judged: ChangeVerdict) -> TriedChange {
    TriedChange {
        judged,
        ratio: Some(1.0),
        low: Some(0.9),
        high: Some(1.1),
        ..unknown(switch, None)
    }
}

#[test]
fn nothing_to_gain_is_said_where_all_is_known_and_nothing_helps() {
    let fine = || known("4 streams", ChangeVerdict::NoDifference);
    let right = || known("rx-gro off on b", ChangeVerdict::Hurts);
    let helps = || known("socket buffers of 16 MiB", ChangeVerdict::Helps);
    let refused = || unknown("rx-lro on on b", Some("the driver refused it"));
    for (tried, is_said, code) in [
        (vec![fine(), right()], true, exit::FINE),
        (vec![fine(), helps()], false, exit::finding()),
        (vec![fine(), refused()], false, exit::FINE),
        (Vec::new(), false, exit::FINE),
    ] {
        let found = found(tried);
        let text = text(&found, 200);
        assert_eq!(text.lines().any(|line| line == NOTHING), is_said, "{text}");
        assert_eq!(exit_code(&found), format!("{code:?}"), "{text}");
    }
}

#[test]
fn a_finding_of_the_check_and_an_early_end_have_their_exit_codes() {
    let with_finding = DiagnosisResult {
        findings: vec![("cached-exception".to_owned(), "1400 bytes".to_owned())],
        ..found(vec![known("4 streams", ChangeVerdict::NoDifference)])
    };
    assert_eq!(exit_code(&with_finding), format!("{:?}", exit::finding()));
    let stopped = DiagnosisResult {
        complete: false,
        ..found(vec![known("4 streams", ChangeVerdict::Helps)])
    };
    assert_eq!(exit_code(&stopped), format!("{:?}", exit::incomplete()));
    let text = text(&stopped, 200);
    assert!(text.contains("The diagnosis was stopped early."), "{text}");
    assert!(!text.contains(NOTHING), "{text}");
}

/// Exit codes cannot be compared.
fn exit_code(found: &DiagnosisResult) -> String {
    format!("{:?}", code(found, exit::FINE))
}

#[test]
fn each_change_that_is_not_known_has_its_own_reason() {
    let refused = Some("the driver refused it");
    let found = found(vec![
        unknown("an MTU of 9000 on both", Some("9000 bytes do not pass")),
        unknown("4 queues on b", None),
        unknown("rx-lro on on b", refused),
        unknown("rx-gro-hw on on b", refused),
    ]);
    let text = text(&found, 200);
    for line in [
        "Why an MTU of 9000 on both is not known: 9000 bytes do not pass",
        "Why rx-lro on on b, rx-gro-hw on on b is not known: the driver refused it",
        "A longer --time gives more rounds.",
    ] {
        assert!(text.lines().any(|told| told == line), "{line}: {text}");
    }
}

#[test]
fn a_check_that_took_all_of_the_time_is_told() {
    let told = |check_s| {
        let found = DiagnosisResult {
            check_s,
            not_tried: vec!["4 streams".to_owned()],
            ..found(Vec::new())
        };
        text(&found, 200)
            .contains("all of the time (--time): only the unchanged path was measured.")
    };
    assert_eq!([4.0, 190.0].map(told), [false, true]);
}

#[test]
fn what_is_compared_is_no_change_that_helps() {
    let found = DiagnosisResult {
        compared: vec![
            Compared {
                what: "the other direction".to_owned(),
                gbit_per_s: Some(2.4),
                ratio: Some(2.4),
                low: Some(2.31),
                high: Some(2.5),
                reason: None,
            },
            Compared {
                what: "messages of 4 KiB".to_owned(),
                gbit_per_s: None,
                ratio: None,
                low: None,
                high: None,
                reason: Some("no connection".to_owned()),
            },
        ],
        ..found(vec![known("4 streams", ChangeVerdict::NoDifference)])
    };
    let text = text(&found, 200);
    for line in [
        "For comparison, the other direction: 2.40 Gbit/s (2.40 times as fast [2.31, 2.50])",
        "For comparison, messages of 4 KiB: not measured: no connection",
        NOTHING,
    ] {
        assert!(text.lines().any(|told| told == line), "{line}: {text}");
    }
    assert!(!text.contains("What helps"), "{text}");
}
