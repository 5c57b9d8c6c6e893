//! The report for test servers: the XML that JUnit's runner for Ant writes and that CI servers read. Two test cases: that no bug was found, with
//! a failure for each bug of the program, and that all was explored, which is skipped where it was not. What vsrun failed of is an error.

use std::fmt::{self, Write};

use super::terminal::shell_line;
use super::text::{bug as report_of, closing, uncontrolled};
use crate::finding::{Bug, Summary};
use crate::incomplete::undoing;

/// Text that comes from outside, as text or attribute of XML. XML 1.0 (section 2.2) has no place for most control characters.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\n' => f.write_str("&#10;")?,
                '\t' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => f.write_char(c)?,
                c => write!(f, "\\x{:02x}", u32::from(c))?,
            }
        }
        Ok(())
    }
}

/// The file.
pub fn xml(summary: &Summary) -> String {
    let name = shell_line(&summary.program);
    let (bugs, failed): (Vec<&Bug>, Vec<&Bug>) = summary.bugs.iter().partition(|bug| bug.kind.is_of_program());
    let reasons: Vec<&str> = undoing(&summary.reasons).map(|reason| reason.sentence()).collect();
    // What found a bug, or failed, is said by the other case.
    let skipped = !reasons.is_empty();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let (failures, errors) = (usize::from(!bugs.is_empty()), usize::from(bugs.is_empty() && !failed.is_empty()));
    let _ = writeln!(
        out,
        "<testsuite name=\"vsrun\" tests=\"2\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{}\" time=\"{:.3}\">",
        usize::from(skipped),
        summary.seconds
    );
    let case = |what: &str, time: f64| {
        format!("<testcase classname=\"vsrun.{}\" name=\"{what}\" time=\"{time:.3}\"", Text(&name))
    };
    let _ = writeln!(out, "{}>", case("no bug", summary.seconds));
    // Schemas allow one outcome for each case: the first tells of all.
    if let Some(first) = bugs.first() {
        outcome(&mut out, "failure", first, &bugs);
    } else if let Some(first) = failed.first() {
        outcome(&mut out, "error", first, &failed);
    }
    let _ = writeln!(
        out,
        "<system-out>{}</system-out>\n</testcase>",
        Text(&(uncontrolled(summary.uncontrolled) + &closing(summary, false)))
    );
    match skipped {
        true => {
            let _ = writeln!(
                out,
                "{}>\n<skipped message=\"{}\"/>\n</testcase>",
                case("explored completely", 0.0),
                Text(&reasons.join("; "))
            );
        }
        false => {
            let _ = writeln!(out, "{}/>", case("explored completely", 0.0));
        }
    }
    out + "</testsuite>\n</testsuites>\n"
}

fn outcome(out: &mut String, what: &str, first: &Bug, all: &[&Bug]) {
    let texts: Vec<String> = all.iter().map(|bug| report_of(bug, false)).collect();
    let _ = writeln!(
        out,
        "<{what} type=\"{}\" message=\"{}\">{}</{what}>",
        first.kind.name(),
        Text(&first.summary),
        Text(&texts.join("\n"))
    );
}

#[cfg(test)]
mod tests {
    use super::super::testing::{deadlock, summary};
    use super::*;
    use crate::finding::Verdict;
    use crate::incomplete::Reason;

    #[test]
    fn all_explored_and_no_bug() {
        let text = xml(&summary());
        assert!(
            text.contains(
                "<testsuite name=\"vsrun\" tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"0\" time=\"0.200\">"
            ),
            "{text}"
        );
        assert!(
            text.contains("<testcase classname=\"vsrun../prog 2\" name=\"explored completely\" time=\"0.000\"/>"),
            "{text}"
        );
    }

    #[test]
    fn what_was_not_explored_is_no_success() {
        let text = xml(&Summary { reasons: [Reason::Time].into(), ..summary() });
        assert!(text.contains("failures=\"0\" errors=\"0\" skipped=\"1\""), "{text}");
        assert!(text.contains("name=\"explored completely\" time=\"0.000\">\n<skipped message=\""), "{text}");
    }

    #[test]
    fn a_bug_whose_names_are_hostile() {
        let mut bug = deadlock();
        bug.summary = "]]><x a=\"1\">&\u{1b}[1m\nend".into();
        let all = Summary {
            verdict: Verdict::Found(bug.kind),
            reasons: [Reason::FirstBug].into(),
            bugs: vec![bug],
            ..summary()
        };
        let text = xml(&all);
        assert!(text.contains("<failure type=\"deadlock\" message=\"]]&gt;&lt;x a=&quot;1&quot;&gt;&amp;\\x1b[1m&#10;end\">DEADLOCK: "), "{text}");
        assert!(!text.contains('\u{1b}'));
        let failed = xml(&Summary::failed(&["p".into()], "no such file"));
        assert!(failed.contains("failures=\"0\" errors=\"1\""), "{failed}");
        assert!(failed.contains("<error type=\"error\" message=\"no such file\">"), "{failed}");
    }
}
