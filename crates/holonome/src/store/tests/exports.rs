//! Export as comma-separated values.

use super::*;

fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    FORMATS[0].write(&StoredRun::open(path).unwrap(), &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn columns_are_named_as_in_the_model() {
    let scratch = Scratch::new();
    let path = scratch.join("run");
    let mut layout = every_kind(2);
    let four = layout.dimension(Dimension::component(4));
    let i = layout.arrays[3].dimensions[0].clone();
    let (row, column) =
        (layout.arrays[2].dimensions[0].clone(), layout.arrays[2].dimensions[1].clone());
    layout.arrays.extend([array("Q", &[&four]), array("A", &[&i, &row, &column])]);
    Store::create(&path, &layout).unwrap();
    let text = text(&path);
    let expected = "t,time,q.x,q.y,q.z,\
        \"R[1,1]\",\"R[1,2]\",\"R[1,3]\",\"R[2,1]\",\"R[2,2]\",\"R[2,3]\",\"R[3,1]\",\"R[3,2]\",\"R[3,3]\",\
        r[2].x,r[2].y,r[2].z,r[3].x,r[3].y,r[3].z,r[4].x,r[4].y,r[4].z,\
        \"x[2,1]\",\"x[2,2]\",\"x[3,1]\",\"x[3,2]\",\"x[4,1]\",\"x[4,2]\",\
        \"rod[1,2]\",\"rod[1,3]\",\"rod[2,3]\",__θ/2,\
        Q[1],Q[2],Q[3],Q[4],\"A[2][1,1]\",";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(text.lines().count(), 1, "no sample is stored yet");
}

#[test]
fn numbers_read_back_as_the_same_bits() {
    let scratch = Scratch::new();
    let path = scratch.join("run");
    let numbers =
        [-0.0, f64::NAN, f64::NEG_INFINITY, 5e-324, f64::MAX, 0.1 + 0.2, 1e300, 123456789.125];
    let layout = Layout {
        times: vec![1e-7; numbers.len() + 1],
        arrays: vec![array("a", &[])],
        ..Layout::default()
    };
    let mut store = Store::create(&path, &layout).unwrap();
    for number in numbers {
        store.append(&[&[number]]).unwrap();
    }
    store.finish(Status::Interrupted, ()).unwrap();
    let text = text(&path);
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(rows.len(), numbers.len(), "only the samples stored");
    for (row, number) in rows.iter().zip(numbers) {
        let (t, a) = row.split_once(',').unwrap();
        assert_eq!(t, "1e-7");
        assert_eq!(a.parse::<f64>().unwrap().to_bits(), number.to_bits(), "{row}");
    }
}

#[test]
fn files_appear_complete_or_not_at_all() {
    let scratch = Scratch::new();
    let (path, file) = (scratch.join("run"), scratch.join("out.csv"));
    let layout = several_chunks(3);
    uninterrupted(&path, &layout);
    let run = StoredRun::open(&path).unwrap();
    fs::write(&file, "old").unwrap();
    FORMATS[0].export(&run, &file).unwrap();
    let written = fs::read_to_string(&file).unwrap();
    assert!(written == text(&path));

    // The third sample of `one` is missing, so that the export fails after it has written a lot.
    fs::remove_file(path.join("one/c.2.0")).unwrap();
    assert!(matches!(FORMATS[0].export(&run, &file), Err(StoreError::Damaged { .. })));
    assert!(fs::read_to_string(&file).unwrap() == written);
    assert_eq!(fs::read_dir(scratch.join("")).unwrap().count(), 3 - 1, "no temporary file is left");
    assert!(matches!(
        FORMATS[0].export(&run, &file.join("below.csv")),
        Err(StoreError::Unwritable { .. })
    ));
}

#[test]
#[cfg(target_os = "linux")]
fn special_files_are_written_not_replaced() {
    let scratch = Scratch::new();
    let path = scratch.join("run");
    uninterrupted(&path, &every_kind(3));
    let run = StoredRun::open(&path).unwrap();
    FORMATS[0].export(&run, Path::new("/dev/null")).unwrap();
    assert!(matches!(
        FORMATS[0].export(&run, Path::new("/dev/full")),
        Err(StoreError::Full { .. })
    ));
    // A link stays a link.
    fs::write(scratch.join("real.csv"), "").unwrap();
    std::os::unix::fs::symlink("real.csv", scratch.join("link.csv")).unwrap();
    FORMATS[0].export(&run, &scratch.join("link.csv")).unwrap();
    assert!(scratch.join("link.csv").is_symlink());
    assert!(fs::read_to_string(scratch.join("real.csv")).unwrap() == text(&path));
}

/// A dimension of length 0 would be one that may still grow, of which a classic file has one.
#[test]
fn a_run_without_samples_is_exported() {
    let scratch = Scratch::new();
    let path = scratch.join("run");
    Store::create(&path, &every_kind(2)).unwrap();
    let run = StoredRun::open(&path).unwrap();
    for format in FORMATS.iter().filter(|format| ["netcdf", "parquet"].contains(&format.name)) {
        let mut bytes = Vec::new();
        format.write(&run, &mut bytes).unwrap();
        let magic: &[u8] = if format.name == "netcdf" { b"CDF\x02" } else { b"PAR1" };
        assert!(bytes.starts_with(magic), "{}", format.name);
    }
}
