use std::path::PathBuf;

use vsrun_model::watch::{Operand, NO_REGISTER};

use super::*;
use crate::base::testing::TempDir;
use crate::binary::symbols::{Symbol, SymbolTable};

/// A function in assembly, and what its sites access: base, index, scale, size, flags.
fn assembled(lines: &str) -> (Sites, u64) {
    assembled_with(lines, Choice::default())
}

fn assembled_with(lines: &str, choice: Choice) -> (Sites, u64) {
    let dir = TempDir::new();
    let source = format!(
        "int main(void) {{ return 0; }}\nlong cell[16]; const long fixed[4] = {{1}};\n\
         __asm__(\".text\\n.globl sample\\n.type sample,@function\\nsample:\\n.cfi_startproc\\n{}\\n ret\\n.cfi_endproc\\n.size sample,.-sample\\n\");",
        lines.replace('\n', "\\n")
    );
    let program = dir.compile("p", "c", &source, &["-O1", "-masm=intel"]);
    let sites = find(&program, choice).unwrap();
    let start = function(&program, "sample").start;
    (sites, start)
}

fn function(program: &std::path::Path, name: &str) -> Symbol {
    let mut cache = crate::binary::SymbolCache::new();
    let module = cache.get(program).unwrap();
    let table: &SymbolTable = module.symbols();
    table.functions.iter().find(|f| f.name == name).unwrap().clone()
}

fn of_sample(lines: &str) -> Vec<Operand> {
    let (sites, start) = assembled(lines);
    let own = sites.sites.iter().filter(|site| (start..start + 512).contains(&site.at));
    own.flat_map(|site| site.operands.clone()).collect()
}

#[test]
fn operands_are_found() {
    const R: u16 = 0;
    const W: u16 = Operand::WRITE;
    type Shape = (u8, u8, u8, u16, u16);
    let cases: &[(&str, &[Shape])] = &[
        ("mov eax, [rdi]", &[(7, NO_REGISTER, 1, 4, R)]),
        ("mov [rdi+rsi*4+8], ax", &[(7, 6, 4, 2, W)]),
        ("add qword ptr [r12], 1", &[(12, NO_REGISTER, 1, 8, W | Operand::READS)]),
        ("lock add byte ptr [r13], 1", &[(13, NO_REGISTER, 1, 1, W | Operand::LOCK)]),
        ("xchg [rdi], rax", &[(7, NO_REGISTER, 1, 8, W | Operand::LOCK)]),
        ("mov eax, [edi+esi]", &[(7, 6, 1, 4, Operand::ADDRESS_32)]),
        ("movups xmm0, [rax]", &[(0, NO_REGISTER, 1, 16, R)]),
        ("vmovups [rcx], ymm0", &[(1, NO_REGISTER, 1, 32, W)]),
        ("fld tbyte ptr [rax]", &[(0, NO_REGISTER, 1, 10, R)]),
        ("lock cmpxchg16b [rdi]", &[(7, NO_REGISTER, 1, 16, W | Operand::LOCK)]),
        ("push qword ptr [rdi]", &[(7, NO_REGISTER, 1, 8, R)]),
        ("pop qword ptr [rdi]", &[(7, NO_REGISTER, 1, 8, W)]),
        ("call qword ptr [rdi]", &[(7, NO_REGISTER, 1, 8, R)]),
        ("mov eax, [rip+cell]", &[(NO_REGISTER, NO_REGISTER, 1, 4, Operand::OF_MODULE)]),
        ("rep stosd", &[(7, NO_REGISTER, 1, 4, W | Operand::STRING | Operand::REPEATED)]),
        ("repne scasb", &[(7, NO_REGISTER, 1, 1, Operand::STRING | Operand::REPEATED | Operand::WHILE_UNEQUAL)]),
        ("movsq", &[(6, NO_REGISTER, 1, 8, Operand::STRING), (7, NO_REGISTER, 1, 8, W | Operand::STRING)]),
        ("mov rax, [rsp+8]", &[]),
        ("mov rax, fs:[0]", &[]),
        ("mov eax, fs:[0xfffffffffffffffc]", &[(NO_REGISTER, NO_REGISTER, 1, 4, Operand::OF_THREAD)]),
        ("inc dword ptr fs:[rax+rcx*4-8]", &[(0, 1, 4, 4, W | Operand::READS | Operand::OF_THREAD)]),
        ("mov eax, [rip+fixed]", &[]),
        ("lea rax, [rdi]\n nop dword ptr [rax]\n prefetcht0 [rax]", &[]),
        ("push rbp\n mov rbp, rsp\n mov eax, [rbp-4]\n pop rbp", &[]),
        ("mov rbp, rdi\n mov eax, [rbp-4]", &[(5, NO_REGISTER, 1, 4, R)]),
    ];
    for (lines, expected) in cases {
        let mut operands = of_sample(lines);
        // A locked instruction is a fence as well.
        let fence = operands.pop_if(|o| *o == Operand::OF_FENCE);
        let locked = expected.iter().any(|e| e.4 & Operand::LOCK != 0);
        assert_eq!(fence.is_some(), locked, "{lines}");
        let found: Vec<_> = operands.iter().map(|o| (o.base, o.index, o.scale, o.size, o.flags)).collect();
        assert_eq!(found, *expected, "{lines}");
    }
    assert_eq!(of_sample("bts [rdi], rax")[0].bit, 0);
    for fence in ["mfence", "lock or dword ptr [rsp], 0", "cpuid", "lock inc dword ptr fs:[8]"] {
        assert_eq!(of_sample(fence), [Operand::OF_FENCE], "{fence}");
    }
    for none in ["lfence", "sfence", "pause", "xchg rax, rbx"] {
        assert!(of_sample(none).is_empty(), "{none}");
    }
}

#[test]
fn frames_that_nobody_knows_have_no_sites() {
    let count = |lines: &str| {
        let (sites, start) = assembled_with(lines, Choice { stack: true, skip_repeated: false });
        sites.sites.iter().filter(|site| (start..start + 512).contains(&site.at)).count()
    };
    let own = [
        "push rbp\n mov rbp, rsp\n mov dword ptr [rbp-4], 1\n mov eax, [rbp-4]\n pop rbp",
        "sub rsp, 24\n mov [rsp+8], eax\n mov ecx, [rsp+rax*4+8]\n add rsp, 24",
        "mov [rsp-8], eax\n mov ecx, [rsp-8]",
    ];
    for lines in own {
        assert_eq!(count(lines), 0, "{lines}");
    }
    let known = [
        // The address is computed,
        "push rbp\n mov rbp, rsp\n lea rdi, [rbp-4]\n mov eax, [rbp-4]\n pop rbp",
        "push rbp\n mov rbp, rsp\n mov rdi, rbp\n mov eax, [rbp-4]\n pop rbp",
        "sub rsp, 24\n mov rdi, rsp\n mov [rsp+8], eax\n add rsp, 24",
        "sub rsp, 24\n lea rdi, [rsp+8]\n mov [rsp+8], eax\n add rsp, 24",
        "sub rsp, 24\n push rsp\n pop rdi\n mov [rsp+8], eax\n add rsp, 24",
        "sub rsp, 24\n movq xmm0, rsp\n mov [rsp+8], eax\n add rsp, 24",
        // the stack is another one,
        "push rax\n mov rsp, rdi\n mov [rsp+8], eax",
        "push rax\n add rsp, rdi\n mov [rsp+8], eax",
        // or the function is only a part of one.
        "mov eax, [rsp+8]",
        "sub rsp, 24\n mov [rsp+8], eax\n test eax, eax\n jne main\n add rsp, 24",
        "sub rsp, 24\n mov [rsp+8], eax\n jmp rax",
    ];
    for lines in known {
        assert_eq!(count(lines), 1, "{lines}");
    }
}

#[test]
fn what_is_not_computed_is_named() {
    let cases = [
        ("vgatherdps xmm0, [rax+xmm1*4], xmm2", Reason::Gather),
        ("vmaskmovps xmm0, xmm1, [rax]", Reason::Masked),
        ("xlatb", Reason::Operand),
        ("xsave [rdi]", Reason::State),
        ("maskmovdqu xmm0, xmm1", Reason::Masked),
    ];
    for (line, reason) in cases {
        let (sites, start) = assembled(line);
        let found = sites.unwatched.iter().find(|u| u.at == start).unwrap_or_else(|| panic!("{line}"));
        assert_eq!(found.reason, reason, "{line}");
    }
}

#[test]
fn repeated_accesses_are_not_checked_again() {
    let repeated = |lines: &str| {
        let (sites, start) = assembled(lines);
        sites.sites.iter().filter(|s| (start..start + 64).contains(&s.at)).map(|s| s.repeated).collect::<Vec<_>>()
    };
    assert_eq!(repeated("mov eax, [rdi]\n mov ecx, [rdi]\n mov [rdi], ecx"), [false, true, false]);
    assert_eq!(repeated("mov eax, [rdi]\n inc rdi\n mov ecx, [rdi]"), [false, false]);
    assert_eq!(repeated("mov [rdi], eax\n call main\n mov ecx, [rdi]"), [false, false]);
    assert_eq!(repeated("mov eax, [rdi]\n1: mov ecx, [rdi]\n test ecx, ecx\n je 1b"), [false, false]);
}

#[test]
fn nothing_jumps_into_a_group() {
    let (sites, start) = assembled("xor eax, eax\n1: add al, [rdi]\n inc rdi\n cmp al, 3\n jne 1b");
    let unit = sites.units.iter().find(|u| (start..start + 32).contains(&u.at)).unwrap();
    assert_eq!((unit.at, unit.count, unit.room), (start + 2, 2, 5), "{unit:?}");
    // Where a jump is not understood, each instruction is by itself.
    let (sites, start) = assembled("xor eax, eax\n add al, [rdi]\n inc rdi\n cmp al, 3\n jmp rsi");
    let unit = sites.units.iter().find(|u| (start..start + 32).contains(&u.at)).unwrap();
    assert_eq!((unit.at, unit.count, unit.room), (start + 2, 1, 2));
}

#[test]
fn tables_and_labels_are_entries() {
    const SOURCE: &str = "
        long cell[64];
        __attribute__((noinline)) long pick(long k, char *p) {
            switch (k) { case 0: return p[1]; case 1: return p[2] + 1; case 2: p[3] = 7; return 2; case 3: return p[9] * 3;
              case 4: return *p; case 5: cell[k] += 2; return 5; case 6: return cell[1]; case 7: return 8; default: return 0; } }
        __attribute__((noinline)) long run(char *code, long *p) {
            static void *const labels[] = { &&a, &&b, &&c };
            goto *labels[*code++];
            a: *p += 1; goto *labels[*code++]; b: *p -= 2; goto *labels[*code++]; c: return *p; }
        int main(int n, char **v) { return pick(n, v[0]) + run(v[0], cell); }
    ";
    for flags in [&["-O2"][..], &["-O0"], &["-O2", "-no-pie", "-fno-pie"]] {
        let dir = TempDir::new();
        let program = dir.compile("p", "c", SOURCE, flags);
        let sites = find(&program, Choice::default()).unwrap();
        for name in ["pick", "run"] {
            let f = function(&program, name);
            assert!(sites.sites.iter().filter(|s| (f.start..f.end).contains(&s.at)).count() >= 3, "{name} {flags:?}");
        }
        assert!(
            sites.unwatched.iter().all(|u| matches!(u.reason, Reason::Unbounded | Reason::Startup)),
            "{:?}",
            sites.unwatched
        );
    }
}

#[test]
fn damaged_files_give_less() {
    let dir = TempDir::new();
    let program = dir.compile("p", "c", "int x[9]; int main(int n, char **v) { return x[n] + v[0][n]; }", &["-O1"]);
    let good = std::fs::read(&program).unwrap();
    let mut state = 7u64;
    for _ in 0..300 {
        let mut bytes = good.clone();
        for _ in 0..8 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = 64 + (state >> 33) as usize % (bytes.len() - 64);
            bytes[at] = (state >> 20) as u8;
        }
        let damaged = dir.file("damaged", &bytes, 0o644);
        let _ = find(&damaged, Choice::default());
    }
}

/// Figures: `VSRUN_SITES=/usr/bin/xz:.. cargo test --release --lib figures -- --ignored --nocapture`.
#[test]
#[ignore = "prints figures of the files that are named"]
fn figures() {
    for path in std::env::var("VSRUN_SITES").unwrap_or_default().split(':').map(PathBuf::from) {
        let since = std::time::Instant::now();
        match find(&path, Choice::default()) {
            Ok(sites) => {
                let (n, units) = (sites.checked(), sites.units.len());
                let short = sites.units.iter().filter(|u| usize::from(u.room) < JUMP).count();
                println!(
                    "{}: {:?} {n} checked, {units} units, {short} short, {} not watched, {:?}",
                    path.display(),
                    sites.counts,
                    sites.unwatched.len(),
                    since.elapsed()
                );
            }
            Err(e) => println!("{}: {e}", path.display()),
        }
    }
}

#[test]
fn random_numbers_of_the_processor_are_found() {
    let (sites, start) = assembled("rdtsc\n rdrand eax\n rdseed rcx\n mov eax, 0xf0c70f");
    // rdtsc has two bytes, rdrand of a word of 32 bits three. What an immediate looks like is no instruction.
    assert_eq!(sites.random, [start + 2, start + 5]);
    assert!(assembled("rdtsc\n cpuid").0.random.is_empty());
}
