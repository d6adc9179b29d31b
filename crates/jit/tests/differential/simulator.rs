//! Simulated processor: decodes what the emitter made, with an independent decoder, and executes
//! it. It fails on any instruction that the emitter does not use and on any access outside the
//! arrays it was given. Registers start with garbage in them.

use holonome_jit::Isa;
use iced_x86::{
    CpuidFeature, Decoder, DecoderOptions, EncodingKind, Instruction, Mnemonic, OpKind, Register,
};

/// Array in memory.
pub struct Region {
    /// Address of the array.
    pub start: u64,
    /// Contents of the array.
    pub numbers: Vec<u64>,
    /// True if code may write to it.
    pub writable: bool,
}

/// The registers and the memory.
pub struct Processor {
    vectors: [[u64; 8]; 32],
    masks: [u64; 8],
    general: [u64; 16],
    zero: bool,
    carry: bool,
    /// The arrays.
    pub memory: Vec<Region>,
    isa: Isa,
}

/// Registers that a function has to preserve: rbx, rsp, rbp, r12 to r15.
const KEPT: [usize; 7] = [3, 4, 5, 12, 13, 14, 15];
/// rdi, rsi, rdx, rcx, r8, r9.
const ARGUMENTS: [usize; 6] = [7, 6, 2, 1, 8, 9];
/// Address of the code.
const CODE: u64 = 0x5000_0000;
/// More instructions than any test runs.
const LONGEST: u64 = 10_000_000;

impl Processor {
    /// Processor with this memory.
    pub fn new(isa: Isa, memory: Vec<Region>) -> Processor {
        let garbage =
            |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 0x7ff0_0000_0000_0001;
        Processor {
            vectors: std::array::from_fn(|r| std::array::from_fn(|l| garbage(8 * r + l))),
            masks: std::array::from_fn(garbage),
            general: std::array::from_fn(|r| garbage(r + 99)),
            zero: false,
            carry: false,
            memory,
            isa,
        }
    }

    /// Call the code; returns what it returns.
    pub fn call(&mut self, code: &[u8], arguments: [u64; 6]) -> u64 {
        for (r, argument) in ARGUMENTS.into_iter().zip(arguments) {
            self.general[r] = argument;
        }
        let before = self.general;
        let mut decoder = Decoder::with_ip(64, code, CODE, DecoderOptions::NONE);
        let mut cleared = false;
        for _ in 0..LONGEST {
            let i = decoder.decode();
            assert!(!i.is_invalid(), "no instruction at {:#x}", i.ip());
            self.check(&i);
            match i.mnemonic() {
                Mnemonic::Ret => {
                    assert!(cleared, "upper halves are left dirty");
                    for r in KEPT {
                        assert_eq!(self.general[r], before[r], "register {r} was to be kept");
                    }
                    assert_eq!(decoder.position(), code.len(), "something stands behind the end");
                    return self.general[0];
                }
                Mnemonic::Vzeroupper => {
                    self.vectors.iter_mut().take(16).for_each(|v| v[2..].fill(0));
                    cleared = true;
                    continue;
                }
                Mnemonic::Jne => {
                    if !self.zero {
                        let target = i.near_branch64();
                        decoder.set_position((target - CODE) as usize).unwrap();
                        decoder.set_ip(target);
                    }
                }
                _ => self.step(&i),
            }
            cleared = false;
        }
        panic!("the code does not end");
    }

    /// Check that the instruction set has the instruction, in its plain form.
    fn check(&self, i: &Instruction) {
        let evex = i.encoding() == EncodingKind::EVEX;
        assert!(!evex || self.isa == Isa::Avx512, "{i} is AVX-512");
        assert_eq!(i.op_mask(), Register::None, "{i} is masked");
        assert!(!i.zeroing_masking() && !i.suppress_all_exceptions(), "{i}");
        assert_eq!(i.rounding_control(), iced_x86::RoundingControl::None, "{i}");
        assert!(!i.has_lock_prefix() && !i.has_rep_prefix() && !i.has_repne_prefix(), "{i}");
        for feature in i.cpuid_features() {
            let known = match feature {
                CpuidFeature::INTEL8086 | CpuidFeature::INTEL386 | CpuidFeature::X64 => true,
                CpuidFeature::MULTIBYTENOP => true,
                CpuidFeature::AVX | CpuidFeature::AVX2 | CpuidFeature::FMA => true,
                CpuidFeature::AVX512F | CpuidFeature::AVX512DQ | CpuidFeature::AVX512VL => {
                    self.isa == Isa::Avx512
                }
                _ => false,
            };
            assert!(known, "{i} needs {feature:?}");
        }
    }

    fn locate(&self, address: u64) -> (usize, usize) {
        assert!(address.is_multiple_of(8), "a number at {address:#x}");
        for (r, region) in self.memory.iter().enumerate() {
            if (region.start..region.start + 8 * region.numbers.len() as u64).contains(&address) {
                return (r, ((address - region.start) / 8) as usize);
            }
        }
        panic!("access at {address:#x}, outside of all arrays");
    }

    fn address(&self, i: &Instruction) -> u64 {
        assert_eq!(i.memory_index(), Register::None, "{i}");
        let base = self.general[i.memory_base().number()];
        base.wrapping_add(i.memory_displacement64())
    }

    /// Length of the vector operands, in numbers.
    fn length(&self, i: &Instruction) -> usize {
        let lengths: Vec<usize> = (0..i.op_count())
            .filter(|&k| i.op_kind(k) == OpKind::Register && i.op_register(k).is_vector_register())
            .map(|k| i.op_register(k).size() / 8)
            .collect();
        assert!(lengths.iter().all(|l| *l == lengths[0]), "{i}");
        lengths[0]
    }

    /// Value of a vector operand; in memory it has `count` numbers, unless it is one for all lanes.
    fn read(&self, i: &Instruction, operand: u32, count: usize) -> [u64; 8] {
        match i.op_kind(operand) {
            OpKind::Register => self.vectors[i.op_register(operand).number()],
            OpKind::Memory => {
                let address = self.address(i);
                let mut value = [0; 8];
                for (l, v) in value.iter_mut().enumerate().take(count) {
                    let offset = if i.is_broadcast() { 0 } else { 8 * l as u64 };
                    let (region, at) = self.locate(address + offset);
                    *v = self.memory[region].numbers[at];
                }
                value
            }
            other => panic!("{i}: operand {other:?}"),
        }
    }

    /// Write a vector register, and clear the lanes above.
    fn write(&mut self, i: &Instruction, value: [u64; 8], count: usize) {
        let register = &mut self.vectors[i.op_register(0).number()];
        *register = [0; 8];
        register[..count].copy_from_slice(&value[..count]);
    }

    fn store(&mut self, i: &Instruction, count: usize) {
        let (value, address) = (self.read(i, 1, count), self.address(i));
        for l in 0..count {
            let (region, at) = self.locate(address + 8 * l as u64);
            assert!(self.memory[region].writable, "{i} writes to an array that is only read");
            self.memory[region].numbers[at] = value[l];
        }
    }

    /// Apply an operation lane by lane, to all lanes or just the lowest.
    fn places(
        &mut self,
        i: &Instruction,
        sources: &[u32],
        scalar: bool,
        f: impl Fn([u64; 3]) -> u64,
    ) {
        let length = self.length(i);
        let count = if scalar { 1 } else { length };
        let mut arguments = [[0; 8]; 3];
        for (argument, &source) in arguments.iter_mut().zip(sources) {
            *argument = self.read(i, source, count);
        }
        // Above the lowest lane, scalar results copy the first source.
        let first = if i.op_count() >= 3 && sources.len() < 3 { 1 } else { 0 };
        let mut value = if scalar { self.read(i, first, count) } else { [0; 8] };
        for l in 0..count {
            value[l] = f([arguments[0][l], arguments[1][l], arguments[2][l]]);
        }
        self.write(i, value, length);
    }

    fn arithmetic(&mut self, i: &Instruction, scalar: bool, f: impl Fn(f64, f64) -> f64) {
        self.places(i, &[1, 2], scalar, |[a, b, _]| {
            f(f64::from_bits(a), f64::from_bits(b)).to_bits()
        });
    }

    fn fused(
        &mut self,
        i: &Instruction,
        scalar: bool,
        order: [u32; 3],
        f: impl Fn(f64, f64, f64) -> f64,
    ) {
        self.places(i, &order, scalar, |v| {
            let [a, b, c] = v.map(f64::from_bits);
            f(a, b, c).to_bits()
        });
    }

    fn compared(i: &Instruction, last: u32, a: u64, b: u64) -> bool {
        let (a, b) = (f64::from_bits(a), f64::from_bits(b));
        match i.immediate(last) {
            0x00 => a == b,
            0x11 => a < b,
            0x12 => a <= b,
            0x1d => a >= b,
            0x1e => a > b,
            other => panic!("{i}: predicate {other:#x}"),
        }
    }

    fn compare(&mut self, i: &Instruction, scalar: bool) {
        if !i.op_register(0).is_k() {
            let ones = |yes| if yes { u64::MAX } else { 0 };
            return self.places(i, &[1, 2], scalar, |[a, b, _]| ones(Self::compared(i, 3, a, b)));
        }
        let count = if scalar { 1 } else { self.length(i) };
        let (a, b) = (self.read(i, 1, count), self.read(i, 2, count));
        let bit = |l: usize| u64::from(Self::compared(i, 3, a[l], b[l])) << l;
        self.masks[i.op_register(0).number()] = (0..count).map(bit).sum();
    }

    fn step(&mut self, i: &Instruction) {
        use Mnemonic::*;
        match i.mnemonic() {
            Nop => {}
            Vaddpd => self.arithmetic(i, false, |a, b| a + b),
            Vaddsd => self.arithmetic(i, true, |a, b| a + b),
            Vsubpd => self.arithmetic(i, false, |a, b| a - b),
            Vsubsd => self.arithmetic(i, true, |a, b| a - b),
            Vmulpd => self.arithmetic(i, false, |a, b| a * b),
            Vmulsd => self.arithmetic(i, true, |a, b| a * b),
            Vdivpd => self.arithmetic(i, false, |a, b| a / b),
            Vdivsd => self.arithmetic(i, true, |a, b| a / b),
            Vsqrtpd => self.places(i, &[1], false, |[a, ..]| f64::from_bits(a).sqrt().to_bits()),
            Vsqrtsd => self.places(i, &[2], true, |[a, ..]| f64::from_bits(a).sqrt().to_bits()),
            // The digits encode which operands are multiplied, and which is added.
            Vfmadd132pd => self.fused(i, false, [0, 2, 1], |a, b, c| a.mul_add(b, c)),
            Vfmadd213pd => self.fused(i, false, [1, 0, 2], |a, b, c| a.mul_add(b, c)),
            Vfmadd231pd => self.fused(i, false, [1, 2, 0], |a, b, c| a.mul_add(b, c)),
            Vfmsub132pd => self.fused(i, false, [0, 2, 1], |a, b, c| a.mul_add(b, -c)),
            Vfmsub213pd => self.fused(i, false, [1, 0, 2], |a, b, c| a.mul_add(b, -c)),
            Vfmsub231pd => self.fused(i, false, [1, 2, 0], |a, b, c| a.mul_add(b, -c)),
            Vfnmadd132pd => self.fused(i, false, [0, 2, 1], |a, b, c| (-a).mul_add(b, c)),
            Vfnmadd213pd => self.fused(i, false, [1, 0, 2], |a, b, c| (-a).mul_add(b, c)),
            Vfnmadd231pd => self.fused(i, false, [1, 2, 0], |a, b, c| (-a).mul_add(b, c)),
            Vfmadd132sd => self.fused(i, true, [0, 2, 1], |a, b, c| a.mul_add(b, c)),
            Vfmadd213sd => self.fused(i, true, [1, 0, 2], |a, b, c| a.mul_add(b, c)),
            Vfmadd231sd => self.fused(i, true, [1, 2, 0], |a, b, c| a.mul_add(b, c)),
            Vfmsub132sd => self.fused(i, true, [0, 2, 1], |a, b, c| a.mul_add(b, -c)),
            Vfmsub213sd => self.fused(i, true, [1, 0, 2], |a, b, c| a.mul_add(b, -c)),
            Vfmsub231sd => self.fused(i, true, [1, 2, 0], |a, b, c| a.mul_add(b, -c)),
            Vfnmadd132sd => self.fused(i, true, [0, 2, 1], |a, b, c| (-a).mul_add(b, c)),
            Vfnmadd213sd => self.fused(i, true, [1, 0, 2], |a, b, c| (-a).mul_add(b, c)),
            Vfnmadd231sd => self.fused(i, true, [1, 2, 0], |a, b, c| (-a).mul_add(b, c)),
            Vbroadcastsd => {
                let [number, ..] = self.read(i, 1, 1);
                self.write(i, [number; 8], self.length(i));
            }
            Vpermpd if i.op_kind(2) == OpKind::Immediate8 => {
                let (numbers, places) = (self.read(i, 1, 4), i.immediate8());
                let picked = |lane: usize| numbers[usize::from(places >> (2 * lane) & 3)];
                let value = std::array::from_fn(|lane| if lane < 4 { picked(lane) } else { 0 });
                self.write(i, value, self.length(i));
            }
            Vcmppd => self.compare(i, false),
            Vcmpsd => self.compare(i, true),
            Vpmovm2q => {
                let (mask, length) = (self.masks[i.op_register(1).number()], self.length(i));
                let value = std::array::from_fn(|l| if mask >> l & 1 == 1 { u64::MAX } else { 0 });
                self.write(i, value, length);
            }
            Vandpd => self.places(i, &[1, 2], false, |[a, b, _]| a & b),
            Vorpd => self.places(i, &[1, 2], false, |[a, b, _]| a | b),
            Vxorpd => self.places(i, &[1, 2], false, |[a, b, _]| a ^ b),
            Vpaddq => self.places(i, &[1, 2], false, |[a, b, _]| a.wrapping_add(b)),
            Vpsubq => self.places(i, &[1, 2], false, |[a, b, _]| a.wrapping_sub(b)),
            Vpmaxsq => self.places(i, &[1, 2], false, |[a, b, _]| (a as i64).max(b as i64) as u64),
            Vpcmpgtq => {
                self.places(
                    i,
                    &[1, 2],
                    false,
                    |[a, b, _]| if (a as i64) > (b as i64) { u64::MAX } else { 0 },
                );
            }
            Vpcmpeqd => {
                let half =
                    |a: u64, b: u64| if a as u32 == b as u32 { u64::from(u32::MAX) } else { 0 };
                self.places(i, &[1, 2], false, |[a, b, _]| {
                    half(a, b) | half(a >> 32, b >> 32) << 32
                });
            }
            Vpsllq => self.places(i, &[1], false, |[a, ..]| a << i.immediate(2)),
            Vpsrlq => self.places(i, &[1], false, |[a, ..]| a >> i.immediate(2)),
            // The sign of the last operand selects the third operand instead of the second.
            Vblendvpd => self.places(
                i,
                &[1, 2, 3],
                false,
                |[c, b, mask]| if mask >> 63 == 1 { b } else { c },
            ),
            Vpternlogq => {
                let table = i.immediate(3);
                self.places(i, &[0, 1, 2], false, |[a, b, c]| {
                    (0..64)
                        .map(|k| {
                            (table >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)) & 1)
                                << k
                        })
                        .sum()
                });
            }
            Vmovupd if i.op0_kind() == OpKind::Memory => {
                let length = self.length(i);
                self.store(i, length);
            }
            Vmovsd if i.op0_kind() == OpKind::Memory => self.store(i, 1),
            Vmovupd => self.places(i, &[1], false, |[a, ..]| a),
            // From memory the upper half is cleared. Between registers it would be kept, which the
            // emitter avoids.
            Vmovsd => {
                assert_eq!(i.op1_kind(), OpKind::Memory, "{i}");
                let value = self.read(i, 1, 1);
                self.write(i, value, 1);
            }
            Vmovapd => {
                assert_eq!(
                    (i.op0_kind(), i.op1_kind()),
                    (OpKind::Register, OpKind::Register),
                    "{i} may be unaligned"
                );
                self.places(i, &[1], false, |[a, ..]| a);
            }
            Vmovq => {
                assert!(i.op_register(0).is_gpr64(), "{i}");
                self.general[i.op_register(0).number()] =
                    self.vectors[i.op_register(1).number()][0];
            }
            Vptest => {
                let length = self.length(i);
                let (a, b) = (self.read(i, 0, length), self.read(i, 1, length));
                self.zero = (0..length).all(|l| a[l] & b[l] == 0);
                self.carry = (0..length).all(|l| !a[l] & b[l] == 0);
            }
            Vpcmpq => {
                assert_eq!(i.immediate(3), 4, "{i}: not equal");
                let length = self.length(i);
                let (a, b) = (self.read(i, 1, length), self.read(i, 2, length));
                let bit = |l: usize| u64::from(a[l] != b[l]) << l;
                self.masks[i.op_register(0).number()] = (0..length).map(bit).sum();
            }
            Kmovb => {
                assert!(i.op_register(0).is_gpr32() && i.op_register(1).is_k(), "{i}");
                self.general[i.op_register(0).number()] =
                    self.masks[i.op_register(1).number()] & 0xff;
            }
            Xor => {
                assert_eq!(
                    (i.op_register(0), i.op_register(1)),
                    (Register::EAX, Register::EAX),
                    "{i}"
                );
                self.general[0] = 0;
                (self.zero, self.carry) = (true, false);
            }
            Not => {
                assert_eq!(i.op_register(0), Register::RAX, "{i}");
                self.general[0] = !self.general[0];
            }
            Setae => {
                assert_eq!(i.op_register(0), Register::AL, "{i}");
                self.general[0] = self.general[0] & !0xff | u64::from(!self.carry);
            }
            Test => {
                assert_eq!(
                    (i.op_register(0), i.op_register(1)),
                    (Register::RAX, Register::RAX),
                    "{i}"
                );
                self.zero = self.general[0] == 0;
            }
            Dec => {
                assert_eq!(i.op_register(0), Register::R9, "{i}");
                self.general[9] = self.general[9].wrapping_sub(1);
                self.zero = self.general[9] == 0;
            }
            Add => {
                assert_ne!(i.op_register(0), Register::RSP, "{i}");
                let general = &mut self.general[i.op_register(0) as usize - Register::RAX as usize];
                *general = general.wrapping_add_signed(i.immediate32to64());
            }
            _ => panic!("the emitter does not use {i}"),
        }
    }
}
