use proptest::prelude::*;
use serde::de::DeserializeOwned;
use vsrun_model::arena::Choice;
use vsrun_model::{Act, Kind, ObjKind, Op, Uid};

use super::*;

type Numbers = (u64, u32, u32, u32, u8);

fn op((deadline, obj, obj2, mask, kind): Numbers, flags: u8, arg: i64) -> Op {
    let mut op = Op::new(Kind(kind)).with(flags).arg(arg);
    (op.obj, op.obj2, op.mask, op.deadline) = (obj, obj2, mask, deadline);
    op
}

fn ops() -> impl Strategy<Value = Op> {
    (any::<Numbers>(), any::<u8>(), any::<i64>()).prop_map(|(numbers, flags, arg)| op(numbers, flags, arg))
}

fn acts() -> impl Strategy<Value = Act> {
    (any::<Numbers>(), any::<u8>(), any::<i64>(), ops()).prop_map(|((uid, tid, pid, parent, kind), fate, state, op)| {
        let mut act = Act::default();
        (act.uid, act.tid, act.pid, act.parent) = (Uid(uid), tid, pid, parent);
        (act.obj_kind, act.fate, act.once) = (ObjKind(kind), fate, u16::from(fate) << 3);
        (act.state, act.op) = (state, op);
        act
    })
}

fn choices() -> impl Strategy<Value = Choice> {
    (any::<u64>(), any::<u32>(), any::<u8>()).prop_map(|(uid, value, kind)| Choice::new(Uid(uid), value, Kind(kind)))
}

/// The value comes back; no part of its bytes is taken for it, nor is more than its bytes.
fn round_trip<T: Serialize + DeserializeOwned + PartialEq + fmt::Debug>(value: &T) {
    let mut bytes = encode(value);
    assert_eq!(decode::<T>(&bytes).as_ref(), Ok(value));
    for length in 0..bytes.len() {
        assert_eq!(decode::<T>(&bytes[..length]), Err(DecodeError::Short));
    }
    bytes.push(0);
    assert_eq!(decode::<T>(&bytes), Err(DecodeError::Long));
}

proptest! {
    #[test]
    fn everything_comes_back(
        acts in prop::collection::vec(acts(), 0..4),
        choices in prop::collection::vec(choices(), 0..6),
        flag in any::<bool>(),
        number in any::<i64>(),
        maybe in any::<Option<u32>>(),
        real in -1e300..1e300f64,
    ) {
        round_trip(&acts);
        round_trip(&choices);
        round_trip(&((flag, number), (maybe, real)));
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(value) = decode::<Vec<Act>>(&bytes) {
            assert_eq!(decode(&encode(&value)), Ok(value));
        }
        if let Ok(value) = decode::<Vec<(Option<Choice>, bool)>>(&bytes) {
            assert_eq!(decode(&encode(&value)), Ok(value));
        }
    }
}

/// Lengths that the bytes do not account for, also of sequences in sequences and of what takes much room once it is read.
#[test]
fn a_length_without_elements_is_short() {
    let long = encode(&u64::MAX);
    assert_eq!(decode::<Vec<u8>>(&long), Err(DecodeError::Short));
    assert_eq!(decode::<Vec<Act>>(&long), Err(DecodeError::Short));
    for inner in [u64::from(u32::MAX), u64::MAX] {
        let nested = [encode(&inner), encode(&inner)].concat();
        assert_eq!(decode::<Vec<Vec<[Act; 16]>>>(&nested), Err(DecodeError::Short));
        assert_eq!(decode::<std::collections::BTreeMap<u8, Vec<Act>>>(&nested), Err(DecodeError::Short));
    }
    assert_eq!(decode::<std::sync::Arc<[Act]>>(&long), Err(DecodeError::Short));
}

#[test]
fn values_that_cannot_be() {
    assert_eq!(decode::<bool>(&[2]), Err(DecodeError::Malformed));
    assert_eq!(decode::<u32>(&encode(&u64::MAX)), Err(DecodeError::Malformed));
    assert_eq!(decode::<Option<u8>>(&[2, 0]), Err(DecodeError::Malformed));
    assert_eq!(encode(&Choice::new(Uid(1), 2, Kind(3))), [1, 2, 3]);
}

#[test]
fn counts_and_parts_that_cannot_be() {
    assert_eq!(counted([0, MOST]), Ok(()));
    assert_eq!(counted([0, MOST + 1]), Err(DecodeError::Wrong("count")));
    for part in [-0.1, 2.1, f64::NAN, f64::INFINITY] {
        assert_eq!(is_part(part), Err(DecodeError::Wrong("estimate")));
    }
    assert_eq!(is_part(1.0 + 1e-9), Ok(()));
}
