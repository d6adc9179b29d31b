//! Tables read from files: the rows of each format, and the reasons why a file is refused.

mod support;

use holonome_model::elaborate::{Environment, elaborate};

/// Atoms of a PDB file with records that are not atoms between them.
const PDB_ATOMS: &str = "\
ATOM      1  O       X   1       1.000   2.000   3.000  0.00  0.00           O
ATOM      2  H       X   1      -4.500  25.000 -36.125  0.00  0.00           H
TER
HETATM    3  H       X   1       7.000   8.000   9.000  0.00  0.00           H
";

/// Positions in the atoms above.
const PDB_POINTS: [[f64; 3]; 3] = [[1.0, 2.0, 3.0], [-4.5, 25.0, -36.125], [7.0, 8.0, 9.0]];

/// First `rows` rows of the columns x, y and z of a file, or the findings.
fn rows(file: &str, text: &str, rows: usize) -> Result<Vec<[f64; 3]>, String> {
    let model = format!(
        "table A = \"{file}\"\ncoordinate r[i in 1..{rows}] : R^3 = (A.x[i], A.y[i], A.z[i])\nmomentum p of r\n\
         hamiltonian sum(i in 1..{rows} : dot(p[i], p[i]))\n"
    );
    let mut environment = Environment {
        read_table: &|_| Ok(text.to_string()),
        draw: &mut |_| 0.5,
        replacements: Vec::new(),
        variations: Default::default(),
        stiff: None,
    };
    let (model, findings) = elaborate(&holonome_model::syntax::read(&model), &mut environment);
    let words = |help: &Option<String>| help.clone().unwrap_or_default();
    let model = model.ok_or_else(|| {
        let all: Vec<String> =
            findings.iter().map(|f| format!("{} ({})", f.message, words(&f.help))).collect();
        all.join("; ")
    })?;
    Ok(model.initial[..3 * rows].chunks(3).map(|r| [r[0], r[1], r[2]]).collect())
}

/// Texts whose first frame has the points, and in which a row after the last one is refused.
#[track_caller]
fn accepted(file: &str, text: &str, points: &[[f64; 3]]) {
    assert_eq!(rows(file, text, points.len()).as_deref(), Ok(points), "{text}");
    let beyond = rows(file, text, points.len() + 1).expect_err(text);
    assert!(beyond.contains(&format!("outside 1..{}", points.len())), "{beyond}");
}

#[track_caller]
fn refused(file: &str, text: &str, fragments: &[&str]) {
    let reason = rows(file, text, 1).expect_err(text);
    for fragment in fragments {
        assert!(reason.contains(fragment), "no {fragment:?} in {reason}");
    }
}

#[test]
fn the_first_frame_of_a_pdb_file_is_the_table() {
    let a = PDB_ATOMS;
    for text in [
        a.to_string(),
        format!("{a}END\n{a}END\n"),
        format!("CRYST1   10.000\n{a}END   \nCONECT    1    2\nATOM garbage\n"),
        format!("HEADER\nMODEL        1\n{a}ENDMDL\nMODEL        2\n{a}ENDMDL\nEND\n"),
        format!("MODEL        1\n{a}MODEL        2\n{a}"),
        format!("CRYST1   10.000\n{a}CRYST1   10.000\n{a}"),
        format!("END\n{a}END\n"),
        format!("{a}END\n").replace('\n', "\r\n"),
    ] {
        accepted("a.pdb", &text, &PDB_POINTS);
    }
    // Chains that end with TER are parts of one frame.
    accepted("a.ENT", &format!("{a}TER\n{a}END\n"), &[PDB_POINTS, PDB_POINTS].concat());
    let of_frame = rows("a.pdb", &format!("{a}END\n{a}END\n"), 4).unwrap_err();
    assert!(of_frame.contains("the atoms of its first frame (with i = 4)"), "{of_frame}");
}

#[test]
fn columns_of_extended_xyz_are_located() {
    let points = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    for text in [
        "2\nwater\nO 1 2 3\nH 4 5 6\n",
        "2\n\nO5\" 1 2 3 -1 -1 -1\nH 4 5 6",
        "2\nProperties=species:S:1:pos:R:3:vel:R:3\nO 1 2 3 9 9 9\nH 4 5 6 9 9 9\n",
        "2\nProperties=species:S:1:vel:R:3:pos:R:3 Time=1\nO 9 9 9 1 2 3\nH 9 9 9 4 5 6\n",
        "2\nLattice=\"5 0 0 0 5 0 0 0 5\" properties=\"pos:R:3:species:S:1\"\n1 2 3 O\n4 5 6 H\n",
        "2\nProperties = Z:I:1:fixed:L:1:Pos:r:3 pbc=\"T T F\"\n8 T 1 2 3\n1 F 4 5 6\n",
        "2\nProperties=label:S:1:pos:R:3\n\"an O\" 1 2 3\n\"an H\" 4 5 6\n",
        "2\nfrom=\"Properties=vel:R:3:pos:R:3\"\nO 1 2 3\nH 4 5 6\n",
        "\u{feff}2\r\nwater\r\nO 1 2 3\r\nH 4 5 6\r\n2\r\nwater\r\nO 7 7 7\r\nH 8 8 8\r\n",
        "2\nwater\nO 1 2 3\nH 4 5 6\n\nwritten by hand\n",
    ] {
        accepted("a.xyz", text, &points);
    }
    for (text, why) in [
        ("1\nProperties=species:S:1:vel:R:3\nO 1 2 3\n", "has no positions, as pos:R:3"),
        ("1\nProperties=species:S:1:pos:R:2\nO 1 2\n", "not of three numbers"),
        ("1\nProperties=species:S:1:pos:S:3\nO 1 2 3\n", "not of three numbers"),
        ("1\nProperties=species:S:1:pos:R\nO 1 2 3\n", "not a list of NAME:TYPE:COLUMNS"),
        ("1\nProperties=species:S:x:pos:R:3\nO 1 2 3\n", "no number of columns for species"),
        (
            "1\nProperties=species:S:1:pos:R:3:vel:R:3\nO 1 2 3\n",
            "line 3, atom 1 of 1: it has 4 columns",
        ),
    ] {
        refused("a.xyz", text, &["line 2", "Properties", why, "an XYZ file has"]);
    }
}

#[test]
fn a_refused_file_is_explained_by_its_format() {
    for (file, text, fragments) in [
        (
            "a.xyz",
            "3\nwater\nO 1 2 3\nH 4 5 6\n",
            ["the file ends after 2 of 3 atoms", "an XYZ file has"],
        ),
        ("a.xyz", "3\nwater\n", ["the file ends after 0 of 3 atoms", "an XYZ file has"]),
        ("a.xyz", "2\nwater\nO 1 2 3\nH 4 5", ["line 4, atom 2 of 2", "'H 4 5'"]),
        ("a.xyz", "2\nwater\nO 1 2 3\nH 4 5 nan\n", ["line 4, atom 2 of 2", "not finite"]),
        ("a.xyz", "1\nwater\nO 1 2 3\nH 4 5 6\n", ["counts 1 atoms", "line 4 has one more"]),
        ("a.xyz", "O 1 2 3\n", ["not the number of atoms", "'O 1 2 3'"]),
        ("a.xyz", "", ["it is empty", "an XYZ file has"]),
        ("a.xyz", "0\n\n", ["it has no atoms", "an XYZ file has"]),
        ("a.pdb", "HEADER\nEND\n", ["it has no atoms", "a PDB file has"]),
        (
            "a.pdb",
            "ATOM      1  O       X   1       1.0x0   2.000   3.000\n",
            ["line 1, atom 1", "columns 31-38"],
        ),
        (
            "a.pdb",
            "ATOM      1  O       X   1       1.000   2.000\n",
            ["line 1, atom 1", "columns 47-54"],
        ),
        ("a.csv", "x;y;z\n1;2;3\n", ["'1;2;3' is not a number", "separated by commas"]),
        ("a.csv", "1,2,3\n4,5,6\n", ["line 1 names no columns", "the columns"]),
        ("a.csv", "x,y,z\n1,2\n", ["line 2 has 2 fields", "separated by commas"]),
        ("a.csv", "x,y,z\n", ["row 1 of table 'A'", "it has no rows"]),
        ("a.gro", "x,y,z\n1,2,3\n", ["end in .gro are not read", ".xyz and .pdb"]),
    ] {
        refused(file, text, &fragments);
    }
    let csv = "\u{feff}\"x\",\"y\",z\n\"1\",2,3\n\n-4, 5 ,6e0\n";
    accepted("a.csv", csv, &[[1.0, 2.0, 3.0], [-4.0, 5.0, 6.0]]);
    accepted("numbers", csv, &[[1.0, 2.0, 3.0], [-4.0, 5.0, 6.0]]);
}

/// Values of `expression` in the table T with these columns x and y.
fn interpolated(x: &[f64], y: &[f64], expression: &str) -> Result<f64, String> {
    let rows: Vec<String> = x.iter().zip(y).map(|(x, y)| format!("{x},{y}\n")).collect();
    let csv = format!("x,y\n{}", rows.concat());
    let model = format!(
        "table T = \"T.csv\"\ncoordinate q = 0\nmomentum p of q\nhamiltonian p^2/2\n\
         observe o = {expression}\n"
    );
    let (model, findings) = support::check_with(&model, &|_| Ok(csv.clone()), &[]);
    let words = || findings.iter().map(|f| f.message.clone()).collect::<Vec<_>>().join("; ");
    let model = model.ok_or_else(words)?;
    Ok(model.observables[0].functional.evaluate(0.0, &model.initial, &model.parameter_values)[0])
}

/// Splines by scipy.interpolate.CubicSpline 1.16 with `bc_type`, at points within three gaps and at
/// a knot.
#[test]
fn splines_are_those_of_scipy() {
    let (x, y) = ([0.0, 0.5, 1.25, 2.0, 3.5], [1.0, -0.5, 2.0, 0.25, 1.0]);
    let at = [0.2, 0.5, 1.9, 3.3];
    for (ends, expected) in [
        ("natural", [0.11075471698113203, -0.5, 0.5690642907058003, 0.5654884696016764]),
        ("clamped", [0.5216153846153845, -0.5, 0.5525648148148148, 0.9025555555555544]),
        ("periodic", [0.2670847457627118, -0.5, 0.5019315756434408, 1.3527721280602636]),
        ("not-a-knot", [-0.287430303030303, -0.5, 0.6914675645342317, -0.9135860830527509]),
    ] {
        for (at, expected) in at.iter().zip(expected) {
            let got = interpolated(&x, &y, &format!("spline(T.x, T.y, {at} + q, {ends})")).unwrap();
            assert!((got - expected).abs() < 1e-14, "{ends} {at}: {got} {expected}");
        }
    }
    for (count, ends, expected) in [
        (2, "natural", [0.4, -0.35]),
        (2, "clamped", [0.472, -0.458]),
        (2, "not-a-knot", [0.4, -0.35]),
        (3, "natural", [0.1872, -0.4583]),
        (3, "clamped", [0.5056, -0.42965]),
        (3, "not-a-knot", [0.096, -0.464]),
    ] {
        for (at, expected) in [0.2, 0.45].iter().zip(expected) {
            let call = format!("spline(T.x, T.y, {at} + q, {ends})");
            let got = interpolated(&x[..count], &y[..count], &call).unwrap();
            assert!((got - expected).abs() < 1e-14, "{count} {ends} {at}: {got} {expected}");
        }
    }
    let (x, y) = ([0.0, 1.0, 3.0], [1.0, 2.0, 1.0]);
    for (at, expected) in
        [(0.2, 1.152), (0.45, 1.437625), (2.5, 1.0625), (-2.8, 1.152), (8.5, 1.0625)]
    {
        let got = interpolated(&x, &y, &format!("spline(T.x, T.y, {at} + q, periodic)")).unwrap();
        assert!((got - expected).abs() < 1e-14, "{at}: {got} {expected}");
    }
}

#[test]
fn lines_and_steps_and_what_is_beyond_the_ends() {
    let (x, y) = ([0.0, 0.5, 1.5], [1.0, -1.0, 3.0]);
    for (call, expected) in [
        ("linear(T.x, T.y, q + 0.25)", 0.0),
        ("linear(T.x, T.y, q + 1)", 1.0),
        ("linear(T.x, T.y, q - 7)", 1.0),
        ("linear(T.x, T.y, q + 7)", 3.0),
        ("hold(T.x, T.y, q + 0.25)", 1.0),
        ("hold(T.x, T.y, q + 0.5)", -1.0),
        ("hold(T.x, T.y, q + 1.4)", -1.0),
        ("hold(T.x, T.y, q + 1.5)", 3.0),
        ("hold(T.x, T.y, q - 1)", 1.0),
        ("spline(T.x, T.y, q - 1)", 1.0),
        ("spline(T.x, T.y, q + 9)", 3.0),
    ] {
        assert_eq!(interpolated(&x, &y, call), Ok(expected), "{call}");
    }
}

#[test]
fn tables_that_are_no_functions_are_refused() {
    let refused = |x: &[f64], y: &[f64], call: &str, fragment: &str| {
        let reason = interpolated(x, y, call).expect_err(call);
        assert!(reason.contains(fragment), "no {fragment} in {reason}");
    };
    let (x, y) = ([0.0, 1.0, 1.0], [1.0, 2.0, 3.0]);
    refused(&x, &y, "linear(T.x, T.y, q)", "row 3 of table 'T' does not increase: 1 comes after 1");
    refused(&x[..1], &y[..1], "hold(T.x, T.y, q)", "1 knots with 1 values");
    let x = [0.0, 1.0, 2.0];
    refused(&x, &y, "spline(T.x, T.y, q, periodic)", "begin with 1 and end with 3");
    refused(&x, &y, "spline(T.x, T.y, q, smooth)", "natural, clamped, periodic or not-a-knot");
    refused(&x, &y, "linear(T.x, T.y, q, natural)", "does not take 4 arguments");
    refused(&x, &y, "linear(T.x, T.z, q)", "has no column 'z'");
    refused(&x, &y, "linear(T.x, q, q)", "not the column of a table");
    refused(&x, &y, "linear(T.x, T.y, (q, q))", "must be a scalar");
}
