use crate::base::testing::TempDir;
use crate::binary::symbols::ElfModule;

const SOURCE: &str = r#"
#include <pthread.h>
typedef struct { pthread_mutex_t lock; long cents; } account;
struct pool {
    char name[16];
    account accounts[2];
    struct { int low, high; };
    union { int number; char letters[4]; } either;
    unsigned flag : 1, rest : 3;
    struct pool *next;
};
struct pool pools[3];
static const volatile int plain = 3;
int grid[4][5];
account *pointer;
pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER;
int *use(int n) { static int calls[8]; return &calls[n] + plain; }
int main(void) { pointer = &pools[1].accounts[0]; return *use(2) + grid[1][2] + pools[2].flag; }
"#;

/// What lies at each offset of a variable.
fn parts(flags: &[&str], all: &[(&str, u64, &str)]) {
    let dir = TempDir::new();
    let path = dir.compile("p", "c", SOURCE, flags);
    let module = ElfModule::open(&path).unwrap();
    for (variable, offset, expected) in all {
        let named = module.symbols().objects_named(variable);
        let start = named.first().unwrap_or_else(|| panic!("{variable}")).0;
        let part = module.part_of_variable(start, *offset).map(|(path, rest)| format!("{path} {rest}"));
        assert_eq!(part.as_deref(), Some(*expected), "{flags:?}: {variable}+{offset}");
    }
}

#[test]
fn members_and_elements() {
    // A mutex has 40 bytes: an account 48, a pool 136.
    let all = [
        ("pools", 0, "[0].name[0] 0"),
        ("pools", 136 + 15, "[1].name[15] 0"),
        ("pools", 136 + 16, "[1].accounts[0].lock 0"),
        ("pools", 136 + 16 + 48 + 8, "[1].accounts[1].lock 8"),
        ("pools", 136 + 16 + 48 + 40, "[1].accounts[1].cents 0"),
        ("pools", 2 * 136 + 16 + 48 + 44, "[2].accounts[1].cents 4"),
        ("pools", 112, "[0].low 0"),
        ("pools", 116, "[0].high 0"),
        ("pools", 121, "[0].either 1"),
        ("pools", 128, "[0].next 0"),
        ("plain", 0, " 0"),
        ("plain", 2, " 2"),
        ("grid", 4 * 7, "[1][2] 0"),
        ("pointer", 0, " 0"),
        ("alone", 0, " 0"),
        ("alone", 16, " 16"),
        ("calls.0", 8, "[2] 0"),
    ];
    for flags in [&["-g"][..], &["-gdwarf-4"], &["-gdwarf-4", "-gsplit-dwarf"], &["-gdwarf-5", "-gsplit-dwarf"]] {
        parts(flags, &all);
    }
}

#[test]
fn nothing_is_known_without_debug_information() {
    let dir = TempDir::new();
    let module = ElfModule::open(&dir.compile("p", "c", SOURCE, &[])).unwrap();
    let start = module.symbols().objects_named("pools")[0].0;
    assert_eq!(module.part_of_variable(start, 16), None);
}

#[test]
fn what_a_class_inherits_is_its_own() {
    let source = "#include <mutex>\n#include <atomic>\nstruct Base { long id; std::mutex lock; };
struct Empty {};
struct Pool : Empty, Base { std::atomic<int> count; static int all; };
int Pool::all;
namespace robot { Pool pools[2]; }
int main() { Pool::all = 3; return robot::pools[1].count + Pool::all; }
";
    let dir = TempDir::new();
    let module = ElfModule::open(&dir.compile("c", "cc", source, &["-g", "-O1"])).unwrap();
    let start = module.symbols().objects_named("robot::pools")[0].0;
    let part = |offset| module.part_of_variable(start, offset).map(|(path, rest)| format!("{path} {rest}"));
    assert_eq!(part(56 + 8).as_deref(), Some("[1].lock 0"));
    assert_eq!(part(56 + 48).as_deref(), Some("[1].count 0"));
    assert_eq!(part(0).as_deref(), Some("[0].id 0"));
    let all = module.symbols().objects_named("Pool::all")[0].0;
    assert_eq!(module.part_of_variable(all, 0), Some((String::new(), 0)));
}
