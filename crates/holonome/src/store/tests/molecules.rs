//! Formats of molecules, read by their definitions here, and by MDAnalysis in
//! `crates/cli/tests/molecules.rs`.

use super::*;
use serde_json::json;

/// Run of `members` points r[i] and one in the plane, at two times.
fn moving(path: &Path, members: i64, scale: f64) -> Vec<Vec<[f64; 3]>> {
    moving_at([0.0, 0.5], path, members, scale)
}

fn moving_at(times: [f64; 2], path: &Path, members: i64, scale: f64) -> Vec<Vec<[f64; 3]>> {
    let mut layout = Layout { times: times.to_vec(), ..Layout::default() };
    let (i, three) = (
        layout.dimension(Dimension::index("i", 1..=members)),
        layout.dimension(Dimension::component(3)),
    );
    let two = layout.dimension(Dimension::component(2));
    let role = |role: &str| [("role".to_string(), json!(role))].into_iter().collect();
    layout.arrays = vec![
        ArrayLayout { attributes: role("coordinate"), ..array("r", &[&i, &three]) },
        ArrayLayout { attributes: role("momentum"), ..array("p", &[&i, &three]) },
        ArrayLayout { attributes: role("coordinate"), ..array("plane", &[&two]) },
    ];
    let mut store = Store::create(path, &layout).unwrap();
    let mut frames = Vec::new();
    for frame in 0..2 {
        let r: Vec<f64> = (0..3 * members)
            .map(|k| scale * ((k * k + 7 * frame) % 23 - 11) as f64 / 8.0)
            .collect();
        store.append(&[&r[..], &r, &[1.5, -2.25]]).unwrap();
        let mut points: Vec<[f64; 3]> = r.chunks(3).map(|c| [c[0], c[1], c[2]]).collect();
        points.push([1.5, -2.25, 0.0]);
        frames.push(points);
    }
    store.finish(Status::Finished, "done").unwrap();
    frames
}

fn bytes(name: &str, path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    let format = FORMATS.iter().find(|format| format.name == name).unwrap();
    format.write(&StoredRun::open(path).unwrap(), &mut bytes).map(|()| bytes)
}

#[test]
fn texts_hold_the_points() {
    let scratch = Scratch::new();
    let path = scratch.join("run");
    let frames = moving(&path, 2, 1.0);
    let xyz = String::from_utf8(bytes("xyz", &path).unwrap()).unwrap();
    let [a, b] = [frames[1][0], frames[1][1]]
        .map(|point| format!("r {:?} {:?} {:?}", point[0], point[1], point[2]));
    let second =
        format!("3\nProperties=species:S:1:pos:R:3 Time=0.5\n{a}\n{b}\nplane 1.5 -2.25 0.0\n");
    assert!(xyz.ends_with(&second) && xyz.lines().count() == 10, "{xyz}");
    let pdb = String::from_utf8(bytes("pdb", &path).unwrap()).unwrap();
    let atoms: Vec<&str> = pdb.lines().filter(|line| line.starts_with("HETATM")).collect();
    assert_eq!(
        (atoms.len(), pdb.matches("MODEL ").count(), pdb.lines().last()),
        (6, 2, Some("END"))
    );
    assert_eq!(atoms[5], "HETATM    3  PLA PLA A   1       1.500  -2.250   0.000  1.00  0.00");
    // A number without room in its columns is refused, with the point.
    let far = scratch.join("far");
    moving(&far, 2, 1e6);
    assert!(bytes("pdb", &far).unwrap_err().to_string().contains("no room in its columns"));
    assert!(bytes("xyz", &far).is_ok());
    // A run without points.
    let none = scratch.join("none");
    uninterrupted(&none, &every_kind(2));
    assert!(bytes("xyz", &none).unwrap_err().to_string().contains("no coordinates"));
}

#[test]
fn dcd_is_made_of_records() {
    let scratch = Scratch::new();
    let path = scratch.join("run");
    let frames = moving(&path, 4, 1.0);
    let bytes = bytes("dcd", &path).unwrap();
    let (mut rest, mut records) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let length = i32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
        records.push(&rest[4..4 + length]);
        assert_eq!(rest[..4], rest[4 + length..8 + length]);
        rest = &rest[8 + length..];
    }
    assert_eq!(
        (records.len(), records[0].len(), &records[0][..8]),
        (3 + 2 * 3, 84, b"CORD\x02\0\0\0" as &[u8])
    );
    assert_eq!((records[1].len(), records[2]), (84, b"\x05\0\0\0" as &[u8]));
    for (frame, points) in frames.iter().enumerate() {
        for c in 0..3 {
            let column = records[3 + 3 * frame + c]
                .chunks(4)
                .map(|word| f32::from_le_bytes(word.try_into().unwrap()));
            assert!(column.eq(points.iter().map(|point| point[c] as f32)));
        }
    }
}

/// CHARMM's header: the first step, the steps between frames, and the length of a step in units of
/// 0.0488882 ps.
#[test]
fn dcd_keeps_the_times() {
    let scratch = Scratch::new();
    for (case, times) in [
        [-5.0, -4.5],
        [-5.25, -4.55],
        [1.0 / 3.0, 1.0],
        [1e3, 1e3 + 0.1],
        [-1e-3, 7.0],
        [0.0, 0.7],
        [-1e9, -1e9 + 1.0],
    ]
    .into_iter()
    .enumerate()
    {
        let path = scratch.join(&format!("run-{case}"));
        moving_at(times, &path, 1, 1.0);
        let header = &bytes("dcd", &path).unwrap()[8..88];
        let number = |k: usize| header[4 * k..][..4].try_into().unwrap();
        let [first, between] = [1, 2].map(|k| f64::from(i32::from_le_bytes(number(k))));
        let length = f64::from(f32::from_le_bytes(number(9))) * 0.048_888_21;
        for (k, t) in times.into_iter().enumerate() {
            let found = (first + k as f64 * between) * length;
            // The length of a step is rounded to 2^-24 of itself, and the start to 2^-23 of the
            // spacing.
            let size = t.abs() + (times[1] - times[0]);
            assert!(
                (found - t).abs() < 4.0 * f64::from(f32::EPSILON) * size,
                "{times:?}: {found} {t}"
            );
        }
    }
    let path = scratch.join("far");
    moving_at([1e10, 1e10 + 0.5], &path, 1, 1.0);
    assert!(
        bytes("dcd", &path)
            .unwrap_err()
            .to_string()
            .contains("no room for frames from t = 10000000000.0 on")
    );
}

/// A number beyond those of single precision is no infinity.
#[test]
fn numbers_that_are_too_large_for_a_format_are_refused_by_name() {
    let scratch = Scratch::new();
    for members in [2, 20] {
        let path = scratch.join(&format!("run-{members}"));
        moving(&path, members, 1e300);
        for format in ["pdb", "dcd", "xtc"] {
            let error = bytes(format, &path).unwrap_err().to_string();
            assert!(
                error.contains("atom 1 (r, 1) is at [-1.375e300,") && error.contains("t = 0.0"),
                "{error}"
            );
        }
        assert!(bytes("xyz", &path).is_ok());
    }
}

/// Reads bits, the highest of a byte first.
fn bits(bytes: &[u8], at: &mut usize, count: u32) -> u64 {
    (0..count).fold(0, |number, _| {
        let bit = bytes[*at / 8] >> (7 - *at % 8) & 1;
        *at += 1;
        number << 1 | u64::from(bit)
    })
}

/// Points of an XTC file, in its unit.
fn read_xtc(mut bytes: &[u8]) -> Vec<Vec<[f64; 3]>> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let mut at = 0;
        let word = |at: &mut usize| {
            *at += 4;
            i32::from_be_bytes(bytes[*at - 4..*at].try_into().unwrap())
        };
        assert_eq!(word(&mut at), 1995);
        let count = word(&mut at) as usize;
        at += 4 * (2 + 9);
        assert_eq!(word(&mut at) as usize, count);
        let mut points = Vec::new();
        if count <= 9 {
            for _ in 0..count {
                points.push([(); 3].map(|()| f64::from(f32::from_bits(word(&mut at) as u32))));
            }
        } else {
            let precision = f64::from(f32::from_bits(word(&mut at) as u32));
            let [least, most] = [(); 2].map(|()| [(); 3].map(|()| i64::from(word(&mut at))));
            let (_, length) = (word(&mut at), word(&mut at) as usize);
            let packed = &bytes[at..at + length];
            at += length.next_multiple_of(4);
            let ranges: [u64; 3] = std::array::from_fn(|c| (most[c] - least[c] + 1) as u64);
            let wide = ranges.iter().any(|range| *range > 0xff_ffff);
            let mut next = 0;
            for _ in 0..count {
                let offset = if wide {
                    ranges.map(|range| bits(packed, &mut next, 64 - range.leading_zeros()))
                } else {
                    let product: u128 = ranges.iter().map(|range| u128::from(*range)).product();
                    let length = 128 - product.leading_zeros();
                    let mut number = 0u128;
                    for first in (0..length).step_by(8) {
                        number |=
                            u128::from(bits(packed, &mut next, (length - first).min(8))) << first;
                    }
                    let (z, rest) =
                        (number % u128::from(ranges[2]), number / u128::from(ranges[2]));
                    [
                        (rest / u128::from(ranges[1])) as u64,
                        (rest % u128::from(ranges[1])) as u64,
                        z as u64,
                    ]
                };
                assert_eq!(bits(packed, &mut next, 1), 0);
                points.push(std::array::from_fn(|c| {
                    (least[c] + offset[c] as i64) as f64 / precision
                }));
            }
            assert!(length * 8 - next < 8);
        }
        frames.push(points);
        bytes = &bytes[at..];
    }
    frames
}

#[test]
fn xtc_unpacks_to_the_points() {
    let scratch = Scratch::new();
    // Few points, many, and so far apart that components are packed one by one.
    for (k, (members, scale)) in [(3, 1.0), (9, 1.0), (40, 1.0), (40, 1e5)].into_iter().enumerate()
    {
        let path = scratch.join(&format!("run-{k}"));
        let frames = moving(&path, members, scale);
        let read = read_xtc(&bytes("xtc", &path).unwrap());
        assert_eq!(read.len(), 2);
        for (point, expected) in read.iter().flatten().zip(frames.iter().flatten()) {
            let rounding = 0.000_51 + 1e-7 * scale;
            assert!(
                point.iter().zip(expected).all(|(a, b)| (a - 0.1 * b).abs() < rounding),
                "{point:?} {expected:?}"
            );
        }
    }
    let far = scratch.join("far");
    moving(&far, 40, 1e9);
    assert!(bytes("xtc", &far).unwrap_err().to_string().contains("no room for a frame"));
}
