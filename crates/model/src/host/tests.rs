use proptest::prelude::*;

use super::*;

fn host(text: &str) -> HostAddress {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn wrong(text: &str) -> String {
    let error = text.parse::<HostAddress>().expect_err(text);
    error.to_string()
}

#[test]
fn every_form_is_read_and_written_as_it_was() {
    for text in [
        "local",
        "local=10.0.0.1",
        "local=fd00::1",
        "netns:a",
        "netns:red-1=10.0.0.1",
        "ssh:b",
        "ssh:root@b",
        "ssh:root@b:2222=10.0.0.2",
        "ssh:me@corp@b.example=fd00::2",
        "ssh:[fd00::1]:22=10.0.0.2",
        "ssh:root@[fd00::1]",
        "exec:docker exec -i c1",
        "exec:env A=b docker exec -i 'my c' =10.0.0.3",
    ] {
        let read = host(text);
        assert_eq!(host(&read.to_string()), read, "{text}");
    }
    assert_eq!(host("netns:a=10.0.0.1").to_string(), "netns:a=10.0.0.1");
    assert_eq!(host("local=[fd00::1]").to_string(), "local=fd00::1");
    assert_eq!(host("local=::ffff:10.0.0.1").to_string(), "local=10.0.0.1");
}

#[test]
fn an_ssh_host_has_its_parts() {
    let parts = |text| match host(text).place {
        Location::Ssh(SshHost { user, host, port }) => (user, host, port),
        other => panic!("{other:?}"),
    };
    let root = Some("root".to_owned());
    assert_eq!(parts("ssh:b"), (None, "b".to_owned(), None));
    assert_eq!(
        parts("ssh:root@b:2222"),
        (root.clone(), "b".to_owned(), Some(2222))
    );
    assert_eq!(
        parts("ssh:root@[fd00::1]:22=10.0.0.1"),
        (root, "fd00::1".to_owned(), Some(22))
    );
}

#[test]
fn a_command_is_split_like_a_shells_words_and_keeps_its_equals_signs() {
    let words = |text| match host(text).place {
        Location::Exec(command) => (command.words, host(text).data),
        other => panic!("{other:?}"),
    };
    let of = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        words("exec:env A=b docker exec -i c1"),
        (of("env|A=b|docker|exec|-i|c1"), None)
    );
    assert_eq!(
        words("exec:kubectl exec -i pod --=10.0.0.1"),
        (of("kubectl|exec|-i|pod|--"), Some([10, 0, 0, 1].into()))
    );
    assert_eq!(
        words(r#"exec:a 'b c' "d \"e\" \f" g\ h '' "i=10.0.0.1""#),
        (of(r#"a|b c|d "e" \f|g h||i=10.0.0.1"#), None)
    );
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_what_to_write() {
    for (text, at, words) in [
        ("", 1, "write local, netns:NAME"),
        ("10.0.0.2", 1, "write ssh: before it"),
        ("nets:a", 1, "did you mean `netns:`"),
        ("SSH:a", 1, "did you mean `ssh:`"),
        ("localhost", 1, "did you mean `local`"),
        ("bob", 1, "`bob` is no kind of host: write local"),
        ("local:a", 6, "takes nothing but =ADDRESS"),
        ("netns:", 7, "needs the name"),
        ("netns:/run/netns/a", 7, "without a path"),
        ("netns:a b", 8, "not the name"),
        ("netns:..", 7, "not the name"),
        ("netns:a=b", 9, "`b` is no IP address"),
        ("netns:ä=b", 9, "`b` is no IP address"),
        ("local=", 7, "`` is no IP address"),
        ("local=0.0.0.0", 7, "not a unicast address"),
        ("local=224.0.0.1", 7, "not a unicast address"),
        ("local=fe80::1", 7, "link-local"),
        ("local=fe80::1%eth0", 7, "no IP address"),
        ("ssh:", 5, "needs a host"),
        ("ssh:@b", 5, "no user before the @"),
        ("ssh:root@", 10, "needs a host"),
        ("ssh:-oProxyCommand=x", 20, "no IP address"),
        ("ssh:-oX", 5, "takes for an option"),
        ("ssh:root@-oX", 10, "takes for an option"),
        ("ssh:b c", 6, "' ' can stand in neither"),
        ("ssh:b;reboot", 6, "';' can stand in neither"),
        ("ssh:fd00::1", 5, "in brackets"),
        ("ssh:[fd00::1", 5, "brackets hold"),
        ("ssh:[b]:22", 6, "brackets hold"),
        ("ssh:[fd00::1]22", 14, "only :PORT"),
        ("ssh:b:0", 7, "`0` is no port"),
        ("ssh:b:ssh=10.0.0.1", 7, "`ssh` is no port"),
        ("exec:", 6, "needs a command"),
        ("exec:=10.0.0.1", 6, "needs a command"),
        ("exec:'' a", 6, "needs a command"),
        ("exec:a 'b", 8, "quote ' is not closed"),
        ("exec:a \"b\\", 8, "quote \" is not closed"),
        ("exec:a \\", 8, "behind the backslash"),
        ("exec:a=0.0.0.0", 8, "not a unicast address"),
    ] {
        let error = wrong(text);
        let place = format!("at character {at}: ");
        assert!(error.starts_with(&place), "{text}: {error}");
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn a_host_in_a_document_is_its_text() {
    let text = "\"ssh:root@b:2222=10.0.0.2\"";
    let host: HostAddress = serde_json::from_str(text).expect("an address");
    assert_eq!(serde_json::to_string(&host).expect("json"), text);
    let error = serde_json::from_str::<HostAddress>("\"bob\"").expect_err("no kind");
    assert!(error.to_string().contains("at character 1"), "{error}");
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic_and_what_it_reads_it_reads_again(text in "(local|netns:|ssh:|exec:)?[ -~äß=:@\\[\\]'\"\\\\]{0,24}(=10\\.0\\.0\\.1)?") {
        if let Ok(read) = text.parse::<HostAddress>() {
            prop_assert_eq!(read.to_string().parse::<HostAddress>(), Ok(read));
        }
    }

    #[test]
    fn single_quotes_keep_everything(words in prop::collection::vec("[ -~äß]{0,12}", 1..6)) {
        let quote = |word: &String| format!("'{}'", word.replace('\'', "'\\''"));
        let line: Vec<String> = words.iter().map(quote).collect();
        prop_assert_eq!(split_words(&line.join(" \t")), Ok(words));
    }
}
