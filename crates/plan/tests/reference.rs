//! docs/plan.md is made from the table that the decoder reads by; this test holds the two together.

use std::fmt::Write as _;
use std::path::Path;

use wirecost_plan::{BEYOND_SCHEMA, Presence, keys};

const HEAD: &str = "\
# The plan

A plan is one YAML file: what to vary, what to load, how often, how long. This page is made from
the table that the program reads plans by (`UPDATE_DOCS=1 cargo test -p wirecost-plan` writes it).

A key marked *factor* takes one value or a list. Every list is a factor; the cells are the cross
product of all factors, less what `exclude` drops. All mistakes are reported at once, each with file,
line, column and what to write instead; then nothing is built and the exit code is 2.

Sizes are bytes, or have a unit (`128KiB`, `1MiB`); rates have one (`10gbit`, `800mbit`); durations
are seconds, or have a unit (`200ms`, `2min`); shares are `5%` or `0.05`.

Offload profiles mean the same for every encapsulation. They are set on every device of the path - underlay,
tunnel, both ends of the guest's veth - and are read back; [offloads.md](offloads.md) has where packets are cut and
where frames are joined by that, and where a switch would change nothing and its cells are refused:

| profile | tso, gso | tunnel segmentation | gro | stands for |
|---|---|---|---|---|
| `none` | off | off | off | every frame handled alone |
| `plain`, tunnelled path | on | off | on | a NIC that segments untunnelled traffic only |
| `plain`, untunnelled path | on | on | on | the same NIC without a tunnel |
| `tunnel` | on | on | on | everything |

`gro` applies to the receiving guest's device, where frames arrive one by one; no other device joins any.

Each switch is a group of `ethtool -k` features: `tso` is `tx-tcp-*segmentation`, `gso` is
`tx-generic-segmentation` and `tx-udp-segmentation`, `gro` is `rx-gro`, `tunnel_segmentation` is
`tx-udp_tnl-*segmentation`, `tx-gre-*segmentation` and `tx-ipxip*-segmentation`, `checksum` is
`tx-checksum-ip-generic` and `rx-checksum` (`software` rules out all segmentation, as the kernel does).

## In an editor, and by program

`wirecost schema` prints the JSON Schema (draft 2020-12) of plans, made from the same table. An editor
with the YAML language server completes keys, shows what they mean and marks mistakes while you
type, once the plan's first line names the schema:

```
wirecost plans jumbo-or-not > my-plan.yaml
wirecost schema > wirecost-plan.schema.json
sed -i '1i # yaml-language-server: $schema=./wirecost-plan.schema.json' my-plan.yaml
wirecost run my-plan.yaml --dry-run
```

The schema never refuses a plan that the program takes. It cannot check the following:

";

const KEYS: &str = "
The program checks all of it; `wirecost run PLAN --dry-run` does so without running anything.

## The keys

| key | takes | without it | what it is |
|---|---|---|---|
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    let item = textwrap::Options::new(118)
        .initial_indent("- ")
        .subsequent_indent("  ");
    for limit in BEYOND_SCHEMA {
        writeln!(page, "{}", textwrap::fill(limit, &item)).expect("to memory");
    }
    page.push_str(KEYS);
    for key in keys() {
        let without = match key.presence {
            Presence::Required => "an error".to_owned(),
            Presence::Optional => "nothing".to_owned(),
            Presence::Default(value) => format!("`{value}`"),
            Presence::Adaptive(value) => format!("`{value}` in an adaptive run"),
        };
        let factor = if key.factor { " *Factor.*" } else { "" };
        let cell = |text: &str| text.replace('|', "\\|");
        writeln!(
            page,
            "| `{}` | {} | {} | {}{factor} |",
            key.path,
            cell(&key.expects()),
            cell(&without),
            cell(key.doc),
        )
        .expect("to memory");
    }
    page
}

#[test]
fn the_reference_page_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plan.md");
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("docs/plan.md");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/plan.md is out of date: run UPDATE_DOCS=1 cargo test -p wirecost-plan"
    );
}
