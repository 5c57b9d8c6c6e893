//! What is said of the things of the model: words, and things by number. They become text once the things have names.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use vsrun_model::{ObjId, Pid, Tid};

/// One word, or several that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// Text as it is.
    Text(Cow<'static, str>),
    /// The name of an object.
    Object(ObjId),
    /// The name of a thread.
    Thread(Tid),
    /// The process id that the program sees.
    Process(Pid),
    /// The name of a signal.
    Signal(u32),
    /// A number in decimal.
    Number(i64),
}

/// A sentence or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words(Vec<Word>);

/// How the things that words refer to are called.
pub trait Names {
    /// An object: `lock_a`.
    fn object(&self, id: ObjId) -> String;
    /// A thread: `0.1`.
    fn thread(&self, t: Tid) -> String;
    /// A process: `1002`.
    fn process(&self, p: Pid) -> String;
}

/// The sentence made of the parts: text, numbers, [`Word`]s, [`Words`].
macro_rules! words {
    ($($part:expr),* $(,)?) => {{
        let mut words = $crate::finding::Words::default();
        $(words.add($part);)*
        words
    }};
}
pub(crate) use words;

impl Words {
    /// Adds a part at the end.
    pub fn add(&mut self, part: impl Into<Words>) {
        self.0.append(&mut part.into().0);
    }

    /// The parts with `between` between them.
    pub fn join(parts: impl IntoIterator<Item = Words>, between: &'static str) -> Words {
        let mut all = Words::default();
        for (i, part) in parts.into_iter().enumerate() {
            all.add(if i == 0 { "" } else { between });
            all.add(part);
        }
        all
    }

    /// The text.
    pub fn render(&self, names: &dyn Names) -> String {
        let text = |word: &Word| match word {
            Word::Text(text) => text.clone(),
            Word::Object(id) => names.object(*id).into(),
            Word::Thread(t) => names.thread(*t).into(),
            Word::Process(p) => names.process(*p).into(),
            Word::Signal(number) => signal_name(*number).into(),
            Word::Number(n) => n.to_string().into(),
        };
        self.0.iter().map(text).collect()
    }
}

impl From<Word> for Words {
    fn from(word: Word) -> Words {
        Words(vec![word])
    }
}

impl From<&'static str> for Words {
    fn from(text: &'static str) -> Words {
        Words(if text.is_empty() { Vec::new() } else { vec![Word::Text(text.into())] })
    }
}

impl From<String> for Words {
    fn from(text: String) -> Words {
        Words(vec![Word::Text(text.into())])
    }
}

macro_rules! from_numbers {
    ($($type:ty),*) => {$(
        impl From<$type> for Words {
            fn from(n: $type) -> Words {
                Words(vec![i64::try_from(n).map_or_else(|_| Word::Text(n.to_string().into()), Word::Number)])
            }
        }
    )*};
}

from_numbers!(i16, i32, i64, u16, u32, u64, usize);

/// SIGUSR1, or the number of a real-time signal.
pub fn signal_name(number: u32) -> String {
    let known = nix::sys::signal::Signal::try_from(number as i32);
    known.map_or_else(|_| format!("signal {number}"), |signal| signal.as_str().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Numbered;

    impl Names for Numbered {
        fn object(&self, id: ObjId) -> String {
            format!("o{id}")
        }
        fn thread(&self, t: Tid) -> String {
            format!("0.{t}")
        }
        fn process(&self, p: Pid) -> String {
            (1001 + p).to_string()
        }
    }

    #[test]
    fn words_become_text_by_the_names_of_things() {
        let held = words![Word::Object(3), ", held by thread ", Word::Thread(1)];
        let all = [
            held,
            Words::default(),
            words!["signal ", Word::Signal(10), " to ", Word::Process(1), " ", u64::MAX, " ", -7i64],
        ];
        let joined = Words::join(all, "; ");
        let text = "o3, held by thread 0.1; ; signal SIGUSR1 to 1002 18446744073709551615 -7";
        assert_eq!(joined.render(&Numbered), text);
        let json = serde_json::to_string(&joined).unwrap();
        assert_eq!(serde_json::from_str::<Words>(&json).unwrap(), joined);
    }
}
