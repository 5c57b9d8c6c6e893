//! Man pages and completions, from the definition of the command line.

use std::io::{self, Write};

use clap::Command;
use clap_complete::aot;
use clap_mangen::roff::{bold, roman, Roff};
use clap_mangen::Man;

use super::resolve::{definition, EXAMPLES, EXIT_STATUS, USAGE};
use crate::config::Shell;

/// Names (`vsrun.1`, `vsrun-replay.1`) and texts of all man pages.
///
/// # Errors
/// None that is known: they are written to memory.
pub fn man_pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut whole = definition();
    whole.build();
    let commands: Vec<Command> = whole.get_subcommands().filter(|c| !c.is_hide_set()).cloned().collect();
    let mut pages = vec![("vsrun.1".to_string(), main_page(whole, &commands)?)];
    for one in commands {
        let name = format!("vsrun-{}", one.get_name());
        let mut text = Vec::new();
        Man::new(one).title(&name).manual("vsrun").render(&mut text)?;
        see_also(&mut text, ["vsrun"])?;
        pages.push((format!("{name}.1"), text));
    }
    Ok(pages)
}

fn main_page(whole: Command, commands: &[Command]) -> io::Result<Vec<u8>> {
    let man = Man::new(whole).manual("vsrun");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    let mut head = Roff::default();
    head.control("SH", ["NAME"]);
    head.text([roman("vsrun - check all interleavings of a program of threads and processes")]);
    head.control("SH", ["SYNOPSIS"]);
    // A synopsis with each of fifty options would be none.
    for (n, line) in USAGE.lines().enumerate() {
        if n > 0 {
            head.control("br", []);
        }
        head.text([bold(line.trim())]);
    }
    head.to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    man.render_subcommands_section(&mut text)?;
    let mut tail = Roff::default();
    for (title, lines) in [("EXIT STATUS", EXIT_STATUS), ("EXAMPLES", EXAMPLES)] {
        tail.control("SH", [title]);
        tail.control("nf", []);
        tail.extend(lines.lines().map(|line| {
            let mut one = Roff::default();
            one.text([roman(line.trim_start())]);
            one
        }));
        tail.control("fi", []);
    }
    tail.to_writer(&mut text)?;
    let names: Vec<String> = commands.iter().map(|c| format!("vsrun-{}", c.get_name())).collect();
    see_also(&mut text, names.iter().map(String::as_str).chain(["gdb"]))?;
    Ok(text)
}

fn see_also<'a>(text: &mut Vec<u8>, names: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
    let mut section = Roff::default();
    section.control("SH", ["SEE ALSO"]);
    let names: Vec<String> = names.into_iter().map(|name| format!("{name}(1)")).collect();
    section.text([roman(names.join(", "))]);
    section.to_writer(text)?;
    text.flush()
}

/// What a shell reads to complete vsrun's arguments.
pub fn completions(shell: Shell) -> String {
    let shell = match shell {
        Shell::Bash => aot::Shell::Bash,
        Shell::Zsh => aot::Shell::Zsh,
        Shell::Fish => aot::Shell::Fish,
    };
    let mut text = Vec::new();
    aot::generate(shell, &mut definition(), "vsrun", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_page_and_each_option_is_on_it() {
        let pages = man_pages().unwrap();
        let text = |name: &str| {
            let found = pages.iter().find(|(of, _)| of == name).unwrap_or_else(|| panic!("no page {name}"));
            // In man pages a hyphen that is typed has a backslash.
            let text = String::from_utf8(found.1.clone()).unwrap().replace("\\-", "-");
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let whole = definition();
        let of = |one: &Command, page: &str| {
            for arg in one.get_arguments().filter(|arg| !arg.is_hide_set()) {
                if let Some(name) = arg.get_long() {
                    assert!(page.contains(&format!("--{name}")), "--{name} is missing");
                    let said = arg.get_help().expect("each option says what it is").to_string();
                    let begins = said.split_whitespace().take(4).collect::<Vec<_>>().join(" ").replace('\'', "\\*(Aq");
                    assert!(page.contains(&begins), "--{name}: '{begins}' is missing: {page}");
                }
            }
        };
        of(&whole, &text("vsrun.1"));
        for one in whole.get_subcommands().filter(|c| !c.is_hide_set()) {
            let page = text(&format!("vsrun-{}.1", one.get_name()));
            assert!(page.contains(&format!("vsrun-{}", one.get_name())), "{page}");
            of(one, &page);
        }
        let main = text("vsrun.1");
        for part in ["EXIT STATUS", "EXAMPLES", "SYNOPSIS", "vsrun-replay(1)", "explored completely"] {
            assert!(main.contains(part), "{part}: {main}");
        }
    }

    #[test]
    fn completions_know_options_and_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let text = completions(shell);
            for word in ["keep-going", "replay", "timeline", "optimal"] {
                assert!(text.contains(word), "{shell:?}: {word}");
            }
        }
    }
}
