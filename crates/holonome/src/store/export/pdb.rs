//! PDB 3.3: a model for every frame, with an atom for every point. The variable names the atom and
//! its residue, the member is its number. Numbers have three decimals; those that do not fit into
//! their columns are refused.

use super::atoms::Atoms;
use super::{Fail, Format, Stream};
use crate::store::error::StoreError;
use crate::store::reader::StoredRun;
use std::io::{self, Write};

/// The Protein Data Bank's format.
pub const FORMAT: Format = Format { name: "pdb", about: "PDB", write };

/// Numbers at which those of atoms, residues and models begin anew: their columns have no room for
/// more.
const ATOMS: usize = 100_000;
const RESIDUES: usize = 10_000;

fn write(run: &StoredRun, output: &mut Stream, fail: Fail) -> Result<(), StoreError> {
    let atoms = Atoms::of(run, fail)?;
    atoms.each(&mut |frame| {
        let mut put = || {
            writeln!(output, "REMARK   t = {:?}", frame.t)?;
            writeln!(output, "MODEL     {:>4}", (frame.number + 1) % RESIDUES)?;
            for (number, ((name, member), point)) in
                atoms.names.iter().zip(frame.points).enumerate()
            {
                let name: String = name
                    .chars()
                    .filter(char::is_ascii_alphanumeric)
                    .collect::<String>()
                    .to_uppercase();
                let [x, y, z] = point.map(|c| format!("{c:8.3}"));
                if x.len() + y.len() + z.len() > 24 {
                    let reason = format!(
                        "{}, which has no room in its columns",
                        atoms.place(number, &frame)
                    );
                    return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
                }
                writeln!(
                    output,
                    "HETATM{:>5} {:<4} {:>3} A{:>4}    {x}{y}{z}  1.00  0.00",
                    (number + 1) % ATOMS,
                    format!(" {name:.3}"),
                    format!("{name:.3}"),
                    member % RESIDUES
                )?;
            }
            writeln!(output, "ENDMDL")
        };
        put().map_err(fail)
    })?;
    writeln!(output, "END").map_err(fail)
}
