//! Tests that every text gives a model or an error, and in time: hostile inputs by hand, and
//! mutations of every model of the project. The entry is that of the coverage-guided fuzzer in
//! `fuzz/`.

#[path = "../../../fuzz/entry.rs"]
mod entry;

use entry::Outcome;
use std::sync::mpsc;
use std::time::Duration;

/// Time after which a text is given up. The slowest of the inputs below takes a few seconds in a
/// test build (two million expressions, the stated limit), on a busy machine longer; anything
/// exponential would never end.
const LONGEST: Duration = Duration::from_secs(1800);

/// Runs one text under a watchdog; `Err` says how it failed.
fn survive(text: &str) -> Result<Outcome, String> {
    let (send, receive) = mpsc::channel();
    let owned = text.to_string();
    let worker = std::thread::spawn(move || {
        let outcome = entry::read(&owned);
        send.send(()).ok();
        outcome
    });
    match receive.recv_timeout(LONGEST) {
        Err(mpsc::RecvTimeoutError::Timeout) => Err("did not end".to_string()),
        _ => worker.join().map_err(|panic| {
            let said = panic.downcast_ref::<String>().cloned();
            said.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default()
        }),
    }
}

/// A model of one oscillator with more statements before it and an expression in its Hamiltonian.
fn model(before: &str, expression: &str) -> String {
    format!(
        "{before}\ncoordinate x[i in 1..3] = i\nmomentum p of x\ncoordinate q : R^2 = (1, 2)\nmomentum pq of q\nhamiltonian dot(pq, pq)/2 + sum(i in 1..3 : p[i]^2 + x[i]^2) + {expression}\n"
    )
}

fn hostile() -> Vec<(&'static str, String, Option<Outcome>)> {
    // 2^60 of `first`, each half the same object.
    let doubling = |before: &str, first: &str, last: &str| {
        let doubled = format!("{}{first}{}", "d(".repeat(60), ")".repeat(60));
        model(&format!("let d(a) = a + a\n{before}"), &last.replace('@', &doubled))
    };
    let chain = |n: usize, step: &str| {
        let lets: String = (1..n)
            .map(|k| format!("let a{k} = {}\n", step.replace('@', &format!("a{}", k - 1))))
            .collect();
        model(&format!("let a0 = q.x\n{lets}"), &format!("a{}", n - 1))
    };
    let parameters = |n: usize, backwards: bool| {
        let mut list: Vec<String> = (1..n)
            .map(|k| format!("parameter c{k} = c{} + 1", k - 1))
            .chain(["parameter c0 = 1".to_string()])
            .collect();
        if backwards {
            list.reverse();
        }
        model(&list.join("\n"), &format!("c{}*q.x", n - 1))
    };
    vec![
        // Index expressions beyond + and *.
        ("index: dot", model("", "sum(i in 1..3 : x[i]*dot((i, 1), (1, 2)))"), Some(Outcome::Sound)),
        ("index: norm", model("", "x[norm((0, 3))]"), Some(Outcome::Sound)),
        ("index: pick of a scaled list", model("let c = 2*(1, 2, 3)", "sum(i in 1..3 : x[i]*(i*c)[i])"), Some(Outcome::Sound)),
        ("index: pick of a matrix", model("", "sum(i in 1..3, j in 1..3 : x[i]*x[j]*identity(3)[i,j])"), Some(Outcome::Sound)),
        ("index: pick of a matrix with indices", model("", "sum(i in 1..3 : x[i]*matrix((i, 0), (0, 1))[1,1])"), Some(Outcome::Sound)),
        ("index: pick of a choice", model("", "sum(i in 1..3 : x[i]*if(i > 1, (i, 1), (1, i))[2])"), Some(Outcome::Sound)),
        ("index: trace, det, cross", model("", "sum(i in 1..3 : x[i]*(trace(diag(i, 1)) + det(diag(i, 1)) + cross((i, 0, 0), (0, 1, 0)).z))"), Some(Outcome::Sound)),
        ("index: a broken number picks nothing", model("", "sum(i in 1..3 : x[i]*(1, 2, 3)[i/2])"), Some(Outcome::Refused)),
        ("index: outside a list in a filter", model("", "sum(i in 1..3 if (1, 0)[i] == 1 : x[i])"), Some(Outcome::Refused)),
        ("index: outside a list in a range", model("", "sum(i in 1..3, j in 1..(1, 2)[i] : x[j])"), Some(Outcome::Refused)),
        ("index: outside a let in a range", model("let f[i in 1..2] = i", "sum(i in 1..3, j in 1..f[i] : x[j])"), Some(Outcome::Refused)),
        ("index: outside a let in a table", model("table d = \"data.csv\"\nlet f[i in 1..2] = i", "sum(i in 1..3 : x[i]*d.x[f[i]])"), Some(Outcome::Refused)),
        ("index: a let in the range of a let", model("let g[k in 1..9] = k\nlet f[i in 1..3, j in 1..g[i]] = i*j", "sum(i in 1..3, j in 1..i : f[i,j]*x[i])"), Some(Outcome::Sound)),
        ("index: the branch not taken is not looked at", model("let f[i in 1..3] = i", "sum(i in 1..3 : x[i]*if(i > 1, f[i-1], 0))"), Some(Outcome::Sound)),
        ("index: not a number", model("", "sum(i in 1..3 : x[i]*(1, 2, 3)[sqrt(0 - i)])"), Some(Outcome::Refused)),
        ("index: beyond integers", model("", "sum(i in 1..2 : x[1e300*i])"), Some(Outcome::Refused)),
        // Sizes.
        ("size: range from -1e300 to 1e300", "coordinate x[i in -1e300..1e300] = 0\nmomentum p of x\nhamiltonian p[1]^2\n".into(), Some(Outcome::Refused)),
        ("size: huge times empty", "coordinate x[i in 1..9e15, j in 1..9e15, k in 1..0] = 0\nmomentum p of x\ncoordinate q = 0\nmomentum u of q\nhamiltonian u^2\n".into(), Some(Outcome::Refused)),
        ("size: many large members", "coordinate x[i in 1..1e7] : R^(1000,1000) = identity(3)\nmomentum p of x\nhamiltonian p[1][1,1]^2\n".into(), Some(Outcome::Refused)),
        ("size: many large members, in full", format!("coordinate x[i in 1..1e7] : R^1000 = ({})\nmomentum p of x\nhamiltonian 0\n", vec!["0"; 1000].join(",")), Some(Outcome::Refused)),
        ("size: many large parameters", model(&format!("parameter c[i in 1..2e7] = ({})", vec!["i"; 1000].join(",")), "c[1][1]*q.x"), Some(Outcome::Refused)),
        ("size: many large constraints", model("", "0").replace("hamiltonian", &format!("constraint g[i in 1..2e7] : ({}) = 0\nhamiltonian", vec!["q.x"; 1000].join(","))), Some(Outcome::Refused)),
        ("size: rows without end", model("", "sum(i in 1..1e7, j in 1..1e7 if i < 0 : q.x)"), Some(Outcome::Refused)),
        ("size: empty rows without end", model("", "sum(i in 1..1e7, j in 1..1e7, k in 1..0 : q.x)"), Some(Outcome::Refused)),
        ("size: terms without end", model("", "sin(sum(i in 1..1e6, j in 1..1e6 : 1))*q.x"), Some(Outcome::Refused)),
        ("size: filtered terms without end", model("", "sin(sum(i in 1..1e6, j in 1..1e6 if i < 0 : q.x))"), Some(Outcome::Refused)),
        ("size: outer product of long lists", model(&format!("let v = ({})", vec!["1"; 50_000].join(",")), "trace(outer(v, v))*q.x"), Some(Outcome::Refused)),
        ("size: product of large matrices", format!("{}{}", model("", "0"), "coordinate A : R^(1000,1000) = 0\nmomentum P of A\nobserve z = (A*A*A)[1,1]\n"), Some(Outcome::Refused)),
        ("size: a template for every row", model("size n = 20000", "sum(i in 1..n : sin(sum(j in 1..i : j*q.x)))"), Some(Outcome::Refused)),
        ("size: a decision for every row", format!("coordinate q : R^1000 = {}\nmomentum p of q = q0\nlet e = q[1]\nparameter q0 = {}\nhamiltonian dot(p, p) + sum(k in 1..200, i in 1..1000 : q[i]^2)\n", "q0", format_args!("({})", vec!["1"; 1000].join(","))), Some(Outcome::Large)),
        (
            "size: a mass matrix that couples everything",
            "size n = 100000\ncoordinate x[i in 1..n] = 0\nvelocity v of x = 1\nhamiltonian sum(i in 1..n : p_x[i]^2) + sum(i in 2..n : p_x[i]*p_x[i-1])/2\n".into(),
            Some(Outcome::Refused),
        ),
        // Shared expressions, which are a huge tree if they are walked without care.
        ("sharing: of indices", doubling("", "i", "sum(i in 1..3 : @*x[i])"), Some(Outcome::Sound)),
        ("sharing: of members", doubling("let f[i in 1..3] = i", "f[i]", "sum(i in 1..3 : @*x[i])"), Some(Outcome::Sound)),
        ("sharing: of variables", doubling("", "x[i]", "sum(i in 1..3 : sin(@))"), Some(Outcome::Sound)),
        ("sharing: of sums", doubling("", "sum(j in 1..3 : x[j])", "@"), Some(Outcome::Refused)),
        ("sharing: of ranges", doubling("", "i", "sum(i in 1..3, j in 1..@/2^60 : x[j])"), Some(Outcome::Sound)),
        ("sharing: of choices", doubling("", "f(i, i)", "sum(i in 1..3 : @*x[i])").replace("let d", "let f(a, b) = a\nlet d").replace("a + a", "if(a > 2, a + 1, a - 1)"), Some(Outcome::Refused)),
        ("sharing: of nothing", model(&(1..60).map(|k| format!("let a{k}(i) = a{}(i) + a{}(i)\n", k - 1, k - 1)).chain(["let a0(i) = i".to_string()]).collect::<String>(), "a59(1)*q.x"), Some(Outcome::Refused)),
        ("sharing: of names", model(&(1..40).map(|k| format!("let b{k} = b{} + b{}\n", k - 1, k - 1)).chain(["let b0 = 1\nparameter c = b39\n".to_string()]).collect::<String>(), "c*q.x"), Some(Outcome::Sound)),
        // Depth.
        ("depth: lets", chain(700, "sin(@)"), Some(Outcome::Sound)),
        ("depth: too many lets", chain(100_000, "sin(@)"), Some(Outcome::Refused)),
        ("depth: parameters", parameters(1_000, false), Some(Outcome::Sound)),
        ("depth: parameters backwards", parameters(1_000, true), Some(Outcome::Sound)),
        ("depth: too many parameters", parameters(100_000, true), Some(Outcome::Refused)),
        ("depth: sizes", model(&(1..100_000).rev().map(|k| format!("size n{k} = n{}\n", k - 1)).chain(["size n0 = 1\n".to_string()]).collect::<String>(), "q.x"), Some(Outcome::Refused)),
        // Definitions read before the names that they use.
        ("order: H in a shape", model("coordinate z : R^H = (0, 0)\nmomentum pz of z", "0"), Some(Outcome::Refused)),
        ("order: H in a parameter", model("parameter c = (H, 1)", "c.x*q.x"), Some(Outcome::Refused)),
        ("order: a let of the state in a parameter", model("parameter c = e\nlet f = q.x\nlet e = 2*f", "c*q.x"), Some(Outcome::Refused)),
        ("order: a let of a parameter in a range", model("parameter c[i in 1..e] = i\nparameter m = 2\nlet e = m", "c[1]*q.x"), Some(Outcome::Refused)),
        ("order: a let of a parameter in a shape", model("coordinate z : R^e = (0, 0)\nmomentum pz of z\nparameter m = 2\nlet e = m", "0"), Some(Outcome::Refused)),
        ("order: a let of parameters in a parameter", model("parameter c = e\nlet e = 2*m\nparameter m = 2", "c*q.x"), Some(Outcome::Sound)),
        ("order: a draw in an observable in an initial value", "observe o = normal()\ncoordinate q = o\nmomentum p of q\nhamiltonian p^2\n".into(), Some(Outcome::Refused)),
        ("a number that underflows is only warned of", model("parameter c = 1e-400", "c*q.x"), Some(Outcome::Sound)),
        // Many mistakes.
        ("mistakes: unknown names", model(&(0..3_000).map(|k| format!("let some_name_{k} = sme_nme_{k}\n")).collect::<String>(), "q.x"), Some(Outcome::Refused)),
    ]
}

#[test]
fn hostile_inputs() {
    let only = std::env::var("HOLONOME_FUZZ_ONLY").ok();
    let mut failures = Vec::new();
    for (name, text, expected) in hostile() {
        if only.as_ref().is_some_and(|o| !name.contains(o.as_str())) {
            continue;
        }
        let start = std::time::Instant::now();
        let outcome = survive(&text);
        println!("{name}: {outcome:?} in {:?}", start.elapsed());
        match (&outcome, expected) {
            (Ok(o), Some(e)) if *o == e => {}
            (Ok(_), None) => {}
            _ => failures.push(format!("{name}: {outcome:?} instead of {expected:?}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A reproducible sequence (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// Every model of the project, an empty text, then the malformed ones.
fn seeds() -> Vec<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut texts = Vec::new();
    for folder in ["models", "suite/models", "suite/errors"] {
        if folder == "suite/errors" {
            texts.push(String::new());
        }
        let mut paths: Vec<_> = std::fs::read_dir(format!("{root}/{folder}"))
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        paths.sort();
        for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "holo")) {
            let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
            // The expectations and comments are not part of the model.
            texts.push(
                text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect(),
            );
        }
    }
    assert!(texts.len() > 200, "the models are where they were");
    texts
}

/// Words, numbers and symbols, with the white space between them.
fn tokens(text: &str) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in text.chars() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        match list.last_mut() {
            Some(last) if word(c) && word(before) => last.push(c),
            _ => list.push(c.to_string()),
        }
        before = c;
    }
    list
}

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "parameter ", "size ", "coordinate ", "momentum ", "velocity ", "hamiltonian ", "constraint ", "integral ", "state ",
    "let ", "observe ", "table ", " of ", " in ", " if ", "if(", "sum(i in 1..3 : ", "sum(i in 1..n, j in i+1..n if i != j : ", "sin(", "sqrt(", "log(", "norm(",
    "dot(", "cross(", "inverse(", "det(", "hat(", "diag(", "transpose(", "trace(", "outer(", "identity(3)", "matrix(", "min(", "abs(",
    "atan2(", "pow(", "normal()", "uniform()", "pi", "t", "H", "(1, 2, 3)", "(1, 2, 3)[i]", "[i]", "[i, j]", "[1]", "[2,2]", ".x", ".z", "'", "^2", "^-1", "^0.5",
    "+", "-", "*", "/", "^", "=", "==", "!=", "<=", " and ", " or ", " not ", "(", ")", "[", "]", ",", ":", "..", "\n", " ", "#", "\"data.csv\"",
    ": R^2", ": R^(2,2)", " = 0", "1..n", "1..3", "q", "p", "x", "r", "i", "j", "n", "q.x", "p_q", "é", "²", "−",
    "\ntable d = \"data.csv\"\n", "d.x[i]", "\nsize n = 3\n", "\nlet f(a) = a + a\n", "f(", "f(f(f(", "\nlet g[i in 1..3] = i\n", "g[i]", "g[",
    "if(i > 1, ", "if(q.x > 0, ", "\nobserve o = ", "\nintegral I1 = ", "\nconstraint c1 : ", "\nconstraint c2[i in 1..2] : ",
];

/// Numbers at the edges. Sizes between a hundred and the limits are left out: they are legal and
/// slow.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "-1",
    "0.5",
    "-0",
    "1e300",
    "1e-300",
    "1e9",
    "1e15",
    "9e15",
    "1e16",
    "4294967296",
    "9007199254740993",
    "1e999",
    "1024",
    "1025",
    "64",
    "65",
];

/// Words that mutations keep, because they decide what a statement is.
#[rustfmt::skip]
const KEPT: &[&str] = &["parameter", "size", "coordinate", "momentum", "velocity", "hamiltonian", "constraint", "integral", "state", "let", "observe", "table", "of", "in", "R"];

/// Expressions that may replace any name or number.
#[rustfmt::skip]
const EXPRESSIONS: &[&str] = &[
    "(i + 1)", "(2*i)", "(n - i)", "(1, 2, 3)[i]", "matrix((1, 2), (3, 4))[i,1]", "if(i > 1, i - 1, 1)", "if(i == 1, (1, i), (i, 1))[2]", "dot((i, 1), (1, i))", "(i/2)", "(i^2)", "sqrt(i)",
    "(-@)", "(@ + @)", "(@*@)", "(@/@)", "(@^2)", "(@^-1)", "(@^0.5)", "(@^@)", "sin(@)", "sqrt(@)", "log(@)", "exp(@)", "abs(@)", "atan2(@, 1)", "min(@, 0)", "max(@, @)", "pow(@, 3)", "if(@ > 0, @, -@)", "if(@ != @, 0, 1)",
    "dot(@, @)", "norm(@)", "(@).x", "(@)[1]", "(@)[2,1]", "(@, @)", "hat(@)", "diag(@)", "transpose(@)", "inverse(@)", "det(@)", "trace(@)", "outer(@, @)", "cross(@, @)", "matrix(@, @)",
    "sum(i in 1..3 : @)", "sum(i in 1..n : @*i)", "sum(k in 1..3, l in k..3 if k != l : k*@)", "sin(sum(k in 1..3 : @*k))", "sin(sum(k in 1..i : k))", "sum(k in 1..0 : @)",
    "q", "p", "q.x", "p.x", "r[1]", "r[i]", "x", "x[i]", "t", "pi", "H", "n", "normal()", "(1, 0, 0)", "identity(3)", "identity(2)", "f(@)", "g[i]", "0", "1",
];

fn mutate(random: &mut Random, seeds: &[String]) -> String {
    // Good models come first; most of the malformed ones get no further than the parser.
    let good = seeds.iter().position(|s| s.is_empty()).unwrap_or(seeds.len());
    let mut text = if random.below(3) > 0 {
        seeds[random.below(good)].clone()
    } else {
        random.pick(seeds).clone()
    };
    for _ in 0..=random.below(3) {
        let mut list = tokens(&text);
        let at = random.below(list.len() + 1);
        let atoms: Vec<usize> =
            (0..list.len()).filter(|&k| list[k].starts_with(char::is_alphanumeric)).collect();
        let atoms: Vec<usize> =
            atoms.into_iter().filter(|&k| !KEPT.contains(&list[k].as_str())).collect();
        // Most edits leave a readable text; otherwise only the parser would be tested.
        let kind = if random.below(8) == 0 { random.below(9) } else { 9 + random.below(21) };
        match kind {
            9..18 if !atoms.is_empty() => {
                let at = *random.pick(&atoms);
                list[at] = random.pick(EXPRESSIONS).replace('@', &list[at]);
            }
            18..24 => {
                // Lines: one of another model, one repeated, one removed.
                let mut lines: Vec<&str> = text.lines().collect();
                let at = random.below(lines.len() + 1);
                let other: Vec<&str> = random.pick(seeds).lines().collect();
                match random.below(4) {
                    0 if at < lines.len() => drop(lines.remove(at)),
                    1 if !lines.is_empty() => lines.insert(at, lines[random.below(lines.len())]),
                    _ if !other.is_empty() => lines.insert(at, random.pick::<&str>(&other)),
                    _ => {}
                }
                text = lines.join("\n") + "\n";
                continue;
            }
            24..27 => {
                let numbers: Vec<usize> = atoms
                    .iter()
                    .copied()
                    .filter(|&k| list[k].starts_with(|c: char| c.is_ascii_digit()))
                    .collect();
                if !numbers.is_empty() {
                    list[*random.pick(&numbers)] = random.pick(NUMBERS).to_string();
                }
            }
            27.. => {
                let names: Vec<usize> = atoms
                    .iter()
                    .copied()
                    .filter(|&k| list[k].starts_with(char::is_alphabetic))
                    .collect();
                if !names.is_empty() {
                    let (to, from) = (*random.pick(&names), *random.pick(&names));
                    list[to] = list[from].clone();
                }
            }
            // A random byte, as in a corrupted file.
            0 => {
                let mut bytes = text.clone().into_bytes();
                if !bytes.is_empty() {
                    let k = random.below(bytes.len());
                    bytes[k] = random.next() as u8;
                }
                text = String::from_utf8_lossy(&bytes).into_owned();
                continue;
            }
            1 => list.truncate(at),
            2 => list.insert(at, random.pick(WORDS).to_string()),
            3 if at < list.len() => list[at] = random.pick(WORDS).to_string(),
            4 if at < list.len() => {
                let end = (at + 1 + random.below(6)).min(list.len());
                list.drain(at..end);
            }
            7 => {
                // A line of another model.
                let lines: Vec<&str> = random.pick(seeds).lines().collect();
                if !lines.is_empty() {
                    list.insert(at, format!("\n{}\n", random.pick(&lines)));
                }
            }
            _ => {
                // A piece of the text repeated elsewhere.
                let end = (at + random.below(20)).min(list.len());
                let piece: Vec<String> = list[at.min(end)..end].to_vec();
                let to = random.below(list.len() + 1);
                list.splice(to..to, piece);
            }
        }
        text = list.concat();
    }
    text
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
}

#[test]
fn mutated_models() {
    let seeds = seeds();
    let cases = number("HOLONOME_FUZZ_CASES", 1_500);
    let mut random = Random(number("HOLONOME_FUZZ_SEED", 1));
    let mut outcomes: std::collections::BTreeMap<Outcome, u64> = Default::default();
    let (mut failures, mut slowest) = (Vec::new(), (Duration::ZERO, String::new()));
    for _ in 0..cases {
        let text = mutate(&mut random, &seeds);
        let start = std::time::Instant::now();
        match survive(&text) {
            Ok(outcome) => *outcomes.entry(outcome).or_default() += 1,
            Err(reason) => failures.push(format!("{reason}\n{text}")),
        }
        if start.elapsed() > slowest.0 {
            slowest = (start.elapsed(), text);
        }
        if failures.len() == 20 {
            break;
        }
    }
    println!("{outcomes:?}; slowest {:?}:\n{}", slowest.0, slowest.1);
    assert!(failures.is_empty(), "{}", failures.join("\n--------\n"));
    // The mutations reach every part: neither all rubbish nor all harmless.
    for outcome in [Outcome::Unreadable, Outcome::Refused, Outcome::Unsound, Outcome::Sound] {
        assert!(
            outcomes.get(&outcome).copied().unwrap_or(0) >= cases / 100,
            "{outcome:?}: {outcomes:?}"
        );
    }
}

#[test]
fn every_model_as_it_is() {
    for text in seeds() {
        survive(&text).unwrap_or_else(|reason| panic!("{reason}\n{text}"));
    }
}

/// Processor time of this thread, which other load on the machine does not lengthen; 0 if the
/// system does not report it.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(
        text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or_default(),
    )
}

#[test]
fn much_of_anything_is_read_in_time() {
    let pieces = [
        "(",
        ")",
        "[",
        "]",
        "([",
        "(]",
        "[(",
        "{",
        "'",
        "\"",
        "\"\n",
        "x\n",
        "x ",
        "x' = ",
        "x'=1\n",
        "1",
        "1 ",
        ".",
        "..",
        ".5 ",
        "-",
        "^",
        "x^",
        "+",
        "x+",
        "|",
        "|x",
        "||",
        "!",
        "not ",
        "sum(",
        "sum(i in ",
        "if(",
        "f(a=",
        "(a=a,",
        "let ",
        "let x=",
        "let x=(\n",
        "parameter m = 1 ",
        "param m = 1\n",
        "paramter x",
        "/*",
        "/*\n",
        "//\n",
        "#",
        "%\n",
        "²",
        "²²x",
        "−",
        "é",
        "$",
        "$ ",
        "\u{200b}",
        "\r",
        "\n",
        "\t",
        ";",
        "a;",
        "a,",
        "a = ",
        "a < ",
        "2 q ",
        "2(",
        "[1,",
        "x[i]",
        "x[i,",
        "x[",
        "H = 1\n",
        "let f(x) = x\n",
        "\u{10ffff}",
        "\0",
        "hamiltonian x",
        "hamiltonian(",
        "coordinate q : R^",
        "(a, b)[1].x + ",
        "=",
        "==\n",
        "size size = size\n",
        "1e999 ",
        "and\n",
        ":\n",
        "let in = 1\n",
        "1..",
        "let d[",
        "momentum p of ",
        "table x = \"a\n",
    ];
    for before in ["", "let x = ", "let x = f("] {
        for piece in pieces {
            let source = format!("{before}{}", piece.repeat(200_000 / piece.len()));
            let start = processor_time();
            holonome_model::syntax::read(&source);
            // Measured: at most 0.1 s (a megabyte in release: 0.17 s). Anything quadratic would
            // take minutes.
            let took = processor_time() - start;
            assert!(took < Duration::from_secs(5), "{before}{piece} took {took:?}");
        }
    }
}
