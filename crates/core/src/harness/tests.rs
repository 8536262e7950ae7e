use super::*;

#[test]
fn every_builtin_preset_reads_and_says_how_it_is_known() {
    for name in builtin_names() {
        let preset = resolve(name, None)
            .unwrap_or_else(|p| panic!("{name}: {p} {:?}", p.causes()))
            .value;
        assert_eq!(preset.name, name);
        assert!(!preset.title.is_empty(), "{name}");
        assert!(!preset.process.names.is_empty(), "{name}");
        assert_eq!(
            preset.command.prompt == PromptStyle::Flag,
            preset.command.prompt_flag.is_some(),
            "{name}: a prompt flag goes with that style"
        );
        assert_eq!(
            preset.usage.format.is_some(),
            !preset.usage.files.is_empty(),
            "{name}: who knows how to read knows where"
        );
        for dialog in &preset.dialogs {
            assert!(
                !dialog.name.is_empty() && !dialog.shows.is_empty(),
                "{name}"
            );
        }
    }
}

#[test]
fn a_town_overrides_one_field_or_adds_a_program() {
    let layer = |text| {
        Some(Layer {
            source: "harnesses/x.toml",
            text,
        })
    };
    let claude = resolve("claude", layer("[command]\nargs = ['--verbose']\n"))
        .unwrap()
        .value;
    assert_eq!(claude.command.args, ["--verbose"]);
    assert_eq!(claude.command.program, "claude");
    let own = resolve("x", layer("[command]\nprogram = 'x-agent'\n"))
        .unwrap()
        .value;
    assert_eq!(
        (own.name.as_str(), own.command.program.as_str()),
        ("x", "x-agent")
    );
    assert!(resolve("x", layer("title = 'X'\n")).is_err());
    assert!(resolve("nope", None).is_err());
}
