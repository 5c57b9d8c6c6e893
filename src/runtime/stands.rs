//! What the numbers of descriptors stand for, and since when, in an execution that is looked at: read off the world before each transition.

use std::collections::BTreeMap;

use vsrun_model::arena::Step;
use vsrun_model::channel::ChanKind;
use vsrun_model::fd::{FLAGS, FREE};
use vsrun_model::{Kind, ObjId, ObjKind, Pid, World, NONE};

use super::tracee::Stopped;
use crate::finding::{words, Finding, Thing, Words};

/// What a number stands for.
pub(super) enum Stands {
    /// A description of the model: which of a pipe's ends it is, the object by which it is known, and whether it is read from.
    Channel(&'static str, ObjId, bool),
    /// What the kernel says of a file.
    File(String),
}

/// What an operation does to numbers: looked up, or changed; then whether something comes to stand there.
pub(super) struct Numbers {
    becomes: bool,
    of: Vec<Stands>,
}

/// By object of a channel and whether it is read from: after how many steps a process had a descriptor for that. `None`: it was there when the
/// first step was told that is.
#[derive(Default)]
pub(super) struct Origins(BTreeMap<(ObjId, bool), Option<u64>>);

impl Origins {
    /// So many transitions have been made; `first`: earlier ones were not told.
    pub fn see(&mut self, world: &World, made: u64, first: bool) {
        let all = (0..world.procs.as_slice().len() as Pid).flat_map(|p| world.fds_from(p, 0));
        for desc in all.filter_map(|(_, desc)| world.descs.get(desc)) {
            for (channel, reads) in [(desc.input, true), (desc.output, false)] {
                let object = world.channel_obj(channel);
                if object != NONE {
                    self.0.entry((object, reads)).or_insert_with(|| (!first || made == 0).then_some(made));
                }
            }
        }
    }

    fn of(&self, object: ObjId, reads: bool) -> Option<u64> {
        self.0.get(&(object, reads)).copied().flatten()
    }

    /// The objects get what is known of them.
    pub fn show(&self, found: &mut Finding) {
        for (&(object, reads), made) in &self.0 {
            // What is only written to has come up with its reader, unless somebody else has that.
            if let Some(view) = found.objects.get_mut(object as usize).filter(|view| reads || view.made.is_none()) {
                view.made = *made;
            }
        }
    }
}

impl Numbers {
    /// Those that a step is about, which is to be made. `None`: it is about none.
    pub fn of(step: &Step, world: &World, stopped: &Stopped) -> Option<Numbers> {
        let op = &step.act.op;
        if !matches!(op.kind, Kind::FD_LOOK | Kind::FD_CHANGE) {
            return None;
        }
        let number = |object: ObjId| {
            let key = world.objects.get(object)?.key;
            let number = key.addr & 0xffff;
            (key.kind == ObjKind::DESCRIPTOR && !matches!(number, FREE | FLAGS)).then_some(number as i32)
        };
        let numbers = [op.obj, op.obj2].into_iter().filter_map(number);
        let becomes = op.kind == Kind::FD_CHANGE && world.objects.get(op.obj).is_some_and(|object| object.value == 1);
        let of = numbers.filter_map(|number| stands(number, (world, step.act.pid), stopped)).collect();
        Some(Numbers { becomes, of })
    }

    /// The words of the step with what its numbers stand for.
    pub fn tell(&self, (text, op): (Words, &vsrun_model::Op), origins: &Origins, found: &Finding) -> Words {
        if self.of.is_empty() {
            return text;
        }
        let one = |stands: &Stands| match stands {
            Stands::File(name) => name.as_str().into(),
            Stands::Channel(end, object, reads) => match origins.of(*object, *reads) {
                Some(step) if found.comes_from_accept(step) => {
                    words![*end, Thing::Object(*object), ", accepted at step ", step]
                }
                Some(step) if step > 0 => words![*end, Thing::Object(*object), ", made at step ", step],
                _ => words![*end, Thing::Object(*object)],
            },
        };
        let of = Words::list(self.of.iter().map(one), "; ", 2);
        match self.becomes {
            true => words![Thing::Object(op.obj), " becomes ", of],
            false => words![text, " (", of, ")"],
        }
    }
}

/// What the program may know a file by: of one in the private layer, whose place there is another one in each execution, its own name.
fn of_program(link: &str) -> String {
    let parts: Vec<&str> = link.split('/').collect();
    match parts[..] {
        [.., session, _, "files", row, name]
            if session.starts_with("vsrun-") && row.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            name.to_string()
        }
        _ => link.to_string(),
    }
}

fn stands(number: i32, (world, p): (&World, Pid), stopped: &Stopped) -> Option<Stands> {
    let Some(desc) = world.fd(p, number).and_then(|desc| world.descs.get(desc)) else {
        let link = std::fs::read_link(format!("/proc/{}/fd/{number}", stopped.pid())).ok()?;
        return Some(Stands::File(of_program(&link.to_string_lossy())));
    };
    let (channel, reads) = if desc.input == NONE { (desc.output, false) } else { (desc.input, true) };
    let object = world.channel_obj(channel);
    let is_pipe = world.channels.get(channel).is_some_and(|channel| channel.kind == ChanKind::PIPE);
    let end = match (is_pipe, reads) {
        (false, _) => "",
        (true, true) => "read end of ",
        (true, false) => "write end of ",
    };
    (object != NONE).then_some(Stands::Channel(end, object, reads))
}
