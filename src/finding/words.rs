//! What is said of the things of the model: words, and things by number. They become text once the things have names.

use std::fmt;

use serde::{Deserialize, Serialize};
pub use vsrun_model::words::Thing;
use vsrun_model::words::{list, Part, Words as Sentences};
use vsrun_model::{ObjId, Pid, Tid};

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    /// Text as it is.
    Text(String),
    /// The name of a thing.
    Thing(Thing),
    /// The next sentence begins.
    Next,
}

/// A sentence or a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words(Vec<Word>);

/// How the things that words refer to are called.
pub trait Names {
    /// An object: `lock_a`.
    fn object(&self, id: ObjId) -> String;
    /// The memory of an object from this byte of its word on: `flag`.
    fn memory(&self, id: ObjId, byte: u8) -> String;
    /// A thread: `0.1`.
    fn thread(&self, t: Tid) -> String;
    /// A process: `1002`.
    fn process(&self, p: Pid) -> String;
}

/// The sentence made of the parts: text, numbers, [`Thing`]s, [`Words`].
macro_rules! words {
    ($($part:expr),* $(,)?) => {{
        let mut words = $crate::finding::Words::default();
        $(vsrun_model::words::Part::say(&$part, &mut words);)*
        words
    }};
}
pub(crate) use words;

impl Words {
    /// The parts with `between` between them, "..." for those after the first `most`.
    pub fn list<P: Part>(parts: impl IntoIterator<Item = P>, between: &str, most: usize) -> Words {
        let mut all = Words::default();
        list(parts.into_iter(), between, most, &mut all);
        all
    }

    /// Nothing is said.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What `say` says, sentence by sentence.
    pub fn sentences(say: impl FnOnce(&mut dyn Sentences)) -> Vec<Words> {
        let mut all = Words::default();
        say(&mut all);
        let sentences = all.0.split(|word| *word == Word::Next).filter(|sentence| !sentence.is_empty());
        sentences.map(|sentence| Words(sentence.to_vec())).collect()
    }

    /// The things that are named, in their order.
    pub fn things(&self) -> impl Iterator<Item = &Thing> {
        self.0.iter().filter_map(|word| match word {
            Word::Thing(thing) => Some(thing),
            _ => None,
        })
    }

    /// The text.
    pub fn render(&self, names: &dyn Names) -> String {
        let text = |word: &Word| match word {
            Word::Text(text) => text.clone(),
            Word::Thing(Thing::Object(id)) => names.object(*id),
            Word::Thing(Thing::Memory(id, byte)) => names.memory(*id, *byte),
            Word::Thing(Thing::Thread(t)) => names.thread(*t),
            Word::Thing(Thing::Process(p)) => names.process(*p),
            Word::Thing(Thing::Signal(number)) => signal_name(*number),
            Word::Next => String::new(),
        };
        self.0.iter().map(text).collect()
    }
}

impl fmt::Write for Words {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Word::Text(before)) => before.push_str(text),
            _ => self.0.push(Word::Text(text.to_string())),
        }
        Ok(())
    }
}

impl Sentences for Words {
    fn thing(&mut self, thing: Thing) {
        self.0.push(Word::Thing(thing));
    }
    fn next(&mut self) {
        self.0.push(Word::Next);
    }
}

impl Part for Words {
    fn say(&self, words: &mut dyn Sentences) {
        self.0.iter().for_each(|word| match word {
            Word::Text(text) => text.say(words),
            Word::Thing(thing) => thing.say(words),
            Word::Next => words.next(),
        });
    }
}

macro_rules! from_parts {
    ($($type:ty),*) => { $(impl From<$type> for Words {
        fn from(part: $type) -> Words {
            words![part]
        }
    })* };
}

from_parts!(&str, String, Thing);

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
        fn memory(&self, id: ObjId, byte: u8) -> String {
            format!("o{id}+{byte}")
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
        let held = words![Thing::Object(3), ", held by thread ", Thing::Thread(1)];
        let all = [
            held,
            Words::default(),
            words![Thing::Memory(3, 4)],
            words!["signal ", Thing::Signal(10), " to ", Thing::Process(1), " ", u64::MAX, " ", -7i64],
        ];
        let joined = Words::list(all, "; ", usize::MAX);
        let text = "o3, held by thread 0.1; ; o3+4; signal SIGUSR1 to 1002 18446744073709551615 -7";
        assert_eq!(joined.render(&Numbered), text);
        let json = serde_json::to_string(&joined).unwrap();
        assert_eq!(serde_json::from_str::<Words>(&json).unwrap(), joined);
    }
}
