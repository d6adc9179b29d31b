//! Encoder of x86-64 instructions: the VEX form (AVX2, FMA) and the EVEX form (AVX-512) of the few
//! instructions that straight-line arithmetic needs (Intel SDM vol. 2, sections 2.3 and 2.7). With
//! AVX-512 all are EVEX, but comparisons that the VEX form can express.
//!
//! Single numbers are in 128-bit registers. Arithmetic on them uses the scalar instructions,
//! operations on bits the packed ones. In VEX form the latter read 16 bytes of memory, which would
//! go past the end of an array, so they take registers only; in EVEX form a broadcast reads just 8.

use crate::isa::{Isa, Width};

/// A vector register.
pub(crate) type Vector = u8;

/// A general register that holds an address or a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum General {
    Rax = 0,
    Rcx = 1,
    Rdx = 2,
    Rsi = 6,
    Rdi = 7,
    R8 = 8,
    R9 = 9,
    R10 = 10,
    R11 = 11,
}

/// A place in memory: a base register and a displacement in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub base: General,
    pub displacement: i32,
}

/// Last operand of most instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Register(Vector),
    Memory(Memory),
    /// EVEX only: one number in memory, broadcast to all lanes.
    Number(Memory),
}

/// Instruction with a vector operand, by its tables in the manual.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code {
    map: u8,
    prefix: u8,
    opcode: u8,
    /// W of the EVEX form.
    wide: bool,
    /// W of the VEX form, if it is not ignored.
    vex_wide: bool,
    /// True if it works on one number at width one, and then reads 8 bytes.
    scalar: bool,
}

const P66: u8 = 1;
const PF3: u8 = 2;
const PF2: u8 = 3;

impl Code {
    /// Arithmetic of the first map: the prefix selects one number or many.
    const fn arithmetic(opcode: u8) -> Code {
        Code { map: 1, prefix: P66, opcode, wide: true, vex_wide: false, scalar: true }
    }

    /// Fused multiply-add: the last bit of the opcode selects one number or many.
    const fn fused(opcode: u8) -> Code {
        Code { map: 2, prefix: P66, opcode, wide: true, vex_wide: true, scalar: true }
    }

    /// An operation on all bits.
    const fn bits(map: u8, opcode: u8) -> Code {
        Code { map, prefix: P66, opcode, wide: true, vex_wide: false, scalar: false }
    }

    pub const ADD: Code = Code::arithmetic(0x58);
    pub const MUL: Code = Code::arithmetic(0x59);
    pub const SUB: Code = Code::arithmetic(0x5c);
    pub const DIV: Code = Code::arithmetic(0x5e);
    pub const SQRT: Code = Code::arithmetic(0x51);
    pub const COMPARE: Code = Code::arithmetic(0xc2);
    const LOAD: Code = Code::arithmetic(0x10);
    const STORE: Code = Code::arithmetic(0x11);
    /// Broadcast of a number in memory to all lanes of a vector.
    const SPREAD: Code = Code::bits(2, 0x19);
    const MOVE: Code = Code::bits(1, 0x28);
    pub const AND: Code = Code::bits(1, 0x54);
    pub const OR: Code = Code::bits(1, 0x56);
    pub const XOR: Code = Code::bits(1, 0x57);
    pub const ADD_INTEGER: Code = Code::bits(1, 0xd4);
    pub const SUB_INTEGER: Code = Code::bits(1, 0xfb);
    /// Shift by a constant; the register field encodes the direction.
    const SHIFT: Code = Code::bits(1, 0x73);
    /// EVEX only.
    pub const LARGER_INTEGER: Code = Code::bits(2, 0x3d);
    /// VEX only: the mask of a > b.
    pub const GREATER_INTEGER: Code = Code::bits(2, 0x37);
    /// VEX only.
    const BLEND: Code = Code { wide: false, ..Code::bits(3, 0x4b) };
    /// Lanes of four by their numbers in a byte that follows.
    const PICK: Code = Code { vex_wide: true, ..Code::bits(3, 0x01) };
    /// EVEX only: lanes of the last operand, by their numbers in the second.
    const PERMUTE: Code = Code::bits(2, 0x16);
    /// EVEX only: lanes of the second and the last operand, by their numbers in the first, which is
    /// overwritten.
    const SHUFFLE_OVER_PLACES: Code = Code::bits(2, 0x77);
    /// EVEX only: lanes of the first, which is overwritten, and the last operand, by their numbers
    /// in the second.
    const SHUFFLE_OVER_FIRST: Code = Code::bits(2, 0x7f);
    /// EVEX only: any function of three bits, by its table of values.
    pub const TERNARY: Code = Code::bits(3, 0x25);
}

/// Roles of the operands of a fused multiply-add; the first is overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// first = first × third + second
    F132 = 0x90,
    /// first = second × first + third
    F213 = 0xa0,
    /// first = second × third + first
    F231 = 0xb0,
}

/// The signs of a fused multiply-add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signs {
    /// a b + c
    Plus = 8,
    /// a b − c
    Minus = 10,
    /// c − a b
    Negated = 12,
}

/// Direction of a shift, as the instruction encodes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Left = 6,
    Right = 2,
}

/// Predicates of comparisons: ordered, so false if an argument is NaN. The mirrored ones are for
/// exchanged arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Predicate {
    Equal = 0x00,
    Less = 0x11,
    LessEqual = 0x12,
    Greater = 0x1e,
    GreaterEqual = 0x1d,
}

impl Predicate {
    /// Predicate of (b, a) that is equivalent to this one of (a, b).
    pub(crate) fn mirrored(self) -> Predicate {
        match self {
            Predicate::Equal => Predicate::Equal,
            Predicate::Less => Predicate::Greater,
            Predicate::LessEqual => Predicate::GreaterEqual,
            Predicate::Greater => Predicate::Less,
            Predicate::GreaterEqual => Predicate::LessEqual,
        }
    }
}

/// Number of the registers that VEX can name.
const VEX_REGISTERS: u8 = 16;
/// Mask register that EVEX comparisons go through.
const MASK: u8 = 1;
/// Predicate of VPCMPQ: not equal.
const NOT_EQUAL: u8 = 4;

/// Place in the code to jump back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label(usize);

/// Writer of code.
pub(crate) struct Assembler {
    bytes: Vec<u8>,
    isa: Isa,
    width: Width,
}

impl Assembler {
    pub(crate) fn new(isa: Isa, width: Width, capacity: usize) -> Assembler {
        Assembler { bytes: Vec::with_capacity(capacity), isa, width }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    fn is_evex(&self) -> bool {
        self.isa == Isa::Avx512
    }

    /// True if instructions for bits take operands in memory.
    pub(crate) fn bits_fold_memory(&self) -> bool {
        self.is_evex() || self.width != Width::One
    }

    /// Bytes by which base registers are ahead of the first byte: short displacements are signed,
    /// and arrays start at 0.
    pub(crate) fn bias(isa: Isa, width: Width) -> i32 {
        match isa {
            Isa::Avx2 => 128,
            Isa::Avx512 => 128 * 8 * width.numbers() as i32,
        }
    }

    /// Go on with vectors of this width.
    pub(crate) fn change_width(&mut self, width: Width) {
        self.width = width;
    }

    /// destination = source
    pub(crate) fn copy(&mut self, destination: Vector, source: Vector) {
        self.put(Code::MOVE, destination, 0, Operand::Register(source));
    }

    pub(crate) fn load(&mut self, destination: Vector, source: Memory) {
        self.put(Code::LOAD, destination, 0, Operand::Memory(source));
    }

    pub(crate) fn store(&mut self, destination: Memory, source: Vector) {
        self.put(Code::STORE, source, 0, Operand::Memory(destination));
    }

    /// Broadcast the number in memory to all lanes of a vector of several.
    pub(crate) fn spread(&mut self, destination: Vector, source: Memory) {
        debug_assert!(self.width != Width::One);
        self.put(Code::SPREAD, destination, 0, Operand::Memory(source));
    }

    /// Broadcast one number of a vector of four to all its lanes.
    pub(crate) fn spread_lane(&mut self, destination: Vector, source: Vector, lane: u8) {
        debug_assert!(self.width == Width::Four && lane < 4);
        self.put(Code::PICK, destination, 0, Operand::Register(source));
        self.bytes.push(lane * 0b0101_0101);
    }

    /// Clear all bits of a register.
    pub(crate) fn zero(&mut self, destination: Vector) {
        self.two(Code::XOR, destination, destination, Operand::Register(destination));
    }

    /// destination = a `code` b
    pub(crate) fn two(&mut self, code: Code, destination: Vector, a: Vector, b: Operand) {
        self.put(code, destination, a, b);
    }

    pub(crate) fn sqrt(&mut self, destination: Vector, a: Operand) {
        // The scalar form copies the upper half of a register: preferably of the one that it waits
        // for anyway. An argument in memory would leave it waiting for another register.
        let upper = match (self.width, a) {
            (Width::One, Operand::Register(a)) => a,
            _ => 0,
        };
        self.put(Code::SQRT, destination, upper, a);
    }

    pub(crate) fn shift(
        &mut self,
        direction: Direction,
        destination: Vector,
        a: Operand,
        count: u8,
    ) {
        self.put(Code::SHIFT, direction as u8, destination, a);
        self.bytes.push(count);
    }

    /// first = the multiply-add whose operands have the roles of `form`
    pub(crate) fn fused(
        &mut self,
        form: Form,
        signs: Signs,
        first: Vector,
        second: Vector,
        third: Operand,
    ) {
        self.put(Code::fused(form as u8 + signs as u8), first, second, third);
    }

    /// destination = the mask of a `predicate` b
    pub(crate) fn compare(
        &mut self,
        predicate: Predicate,
        destination: Vector,
        a: Vector,
        b: Operand,
    ) {
        // The VEX form puts the mask where it belongs; the EVEX form takes another instruction for
        // that, which waits.
        let within_vex = match b {
            Operand::Register(b) => b < VEX_REGISTERS,
            Operand::Memory(_) => true,
            Operand::Number(_) => false,
        };
        let within_vex =
            within_vex && self.width != Width::Eight && destination.max(a) < VEX_REGISTERS;
        if self.is_evex() && !within_vex {
            self.put(Code::COMPARE, MASK, a, b);
            self.bytes.push(predicate as u8);
            let spread = Code { prefix: PF3, ..Code::bits(2, 0x38) };
            self.put(spread, destination, 0, Operand::Register(MASK));
        } else {
            self.encode(false, Code::COMPARE, destination, a, b);
            self.bytes.push(predicate as u8);
        }
    }

    /// destination = b where the mask is true, else c; VEX only.
    pub(crate) fn blend(&mut self, destination: Vector, mask: Vector, b: Operand, c: Vector) {
        debug_assert!(!self.is_evex());
        self.put(Code::BLEND, destination, c, b);
        self.bytes.push(mask << 4);
    }

    /// destination = table(destination, b, c), bit by bit; EVEX only.
    pub(crate) fn ternary(&mut self, table: u8, destination: Vector, b: Vector, c: Operand) {
        debug_assert!(self.is_evex());
        self.put(Code::TERNARY, destination, b, c);
        self.bytes.push(table);
    }

    /// destination = the lanes of a by their numbers in `places`; EVEX only.
    pub(crate) fn permute(&mut self, destination: Vector, places: Vector, a: Operand) {
        debug_assert!(self.is_evex());
        self.put(Code::PERMUTE, destination, places, a);
    }

    /// places = the lanes of a and b by their numbers in it; EVEX only.
    pub(crate) fn shuffle_over_places(&mut self, places: Vector, a: Vector, b: Operand) {
        debug_assert!(self.is_evex());
        self.put(Code::SHUFFLE_OVER_PLACES, places, a, b);
    }

    /// a = the lanes of a and b by their numbers in `places`; EVEX only.
    pub(crate) fn shuffle_over_first(&mut self, a: Vector, places: Vector, b: Operand) {
        debug_assert!(self.is_evex());
        self.put(Code::SHUFFLE_OVER_FIRST, a, places, b);
    }

    /// Set all bits of a register.
    pub(crate) fn ones(&mut self, destination: Vector) {
        if self.is_evex() {
            self.ternary(0xff, destination, destination, Operand::Register(destination));
        } else {
            self.two(Code::bits(1, 0x76), destination, destination, Operand::Register(destination));
        }
    }

    /// rax = 0
    pub(crate) fn clear_flag(&mut self) {
        self.bytes.extend([0x31, 0xc0]);
    }

    /// rax = 0 if all bits of `register` are set, else nonzero. `spare` is overwritten.
    pub(crate) fn flag_unless_ones(&mut self, register: Vector, spare: Vector) {
        match (self.width, self.isa) {
            (Width::One, _) => {
                // vmovq rax, register; not rax
                self.put(
                    Code::bits(1, 0x7e).wide_in_vex(),
                    register,
                    0,
                    Operand::Register(General::Rax as u8),
                );
                self.bytes.extend([0x48, 0xf7, 0xd0]);
            }
            (_, Isa::Avx512) => {
                // vpcmpneqq k, register, ones; kmovb eax, k
                self.ones(spare);
                self.put(Code::bits(3, 0x1f), MASK, register, Operand::Register(spare));
                self.bytes.push(NOT_EQUAL);
                self.bytes.extend([0xc5, 0xf9, 0x93, 0xc0 | MASK]);
            }
            (_, Isa::Avx2) => {
                // xor eax, eax; vptest register, ones; setnc al
                self.clear_flag();
                self.ones(spare);
                self.put(Code::bits(2, 0x17), register, 0, Operand::Register(spare));
                self.bytes.extend([0x0f, 0x93, 0xc0]);
            }
        }
    }

    /// vzeroupper; ret
    pub(crate) fn leave(&mut self) {
        self.bytes.extend([0xc5, 0xf8, 0x77, 0xc3]);
    }

    /// Head of a loop, aligned for decoders.
    pub(crate) fn label(&mut self) -> Label {
        const ALIGNMENT: usize = 32;
        // The longest recommended no-operation, and the shorter ones.
        const NOPS: [&[u8]; 9] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0f, 0x1f, 0x00],
            &[0x0f, 0x1f, 0x40, 0x00],
            &[0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
            &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
            &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
        ];
        let mut missing = self.bytes.len().next_multiple_of(ALIGNMENT) - self.bytes.len();
        while missing > 0 {
            let take = missing.min(NOPS.len());
            self.bytes.extend(NOPS[take - 1]);
            missing -= take;
        }
        Label(self.bytes.len())
    }

    /// Advance a pointer by so many bytes.
    pub(crate) fn advance(&mut self, pointer: General, bytes: i32) {
        let n = pointer as u8;
        self.bytes.extend([0x48 | (n >> 3), 0x81, 0xc0 | (n & 7)]);
        self.bytes.extend(bytes.to_le_bytes());
    }

    /// Set a counter.
    pub(crate) fn set(&mut self, counter: General, count: u32) {
        let n = counter as u8;
        self.bytes.extend([0x40 | (n >> 3), 0xb8 | (n & 7)]);
        self.bytes.extend(count.to_le_bytes());
    }

    /// register = the integer in memory
    pub(crate) fn load_whole(&mut self, register: General, from: Memory) {
        self.whole(0x8b, register as u8, from);
    }

    /// The integer in memory = register
    pub(crate) fn store_whole(&mut self, to: Memory, register: General) {
        self.whole(0x89, register as u8, to);
    }

    /// Add to the integer in memory; a jump that follows tests if the sum is 0.
    pub(crate) fn add_to(&mut self, to: Memory, number: i8) {
        self.whole(0x83, 0, to);
        self.bytes.push(number as u8);
    }

    fn whole(&mut self, opcode: u8, register: u8, Memory { base, displacement }: Memory) {
        let base = base as u8;
        self.bytes.extend([
            0x48 | ((register >> 3) << 2) | (base >> 3),
            opcode,
            0x80 | ((register & 7) << 3) | (base & 7),
        ]);
        self.bytes.extend(displacement.to_le_bytes());
    }

    /// Shift an integer; a jump that follows tests if the result is 0.
    pub(crate) fn shift_whole(&mut self, direction: Direction, register: General, count: u8) {
        let n = register as u8;
        let which = match direction {
            Direction::Left => 0xe0,
            Direction::Right => 0xe8,
        };
        self.bytes.extend([0x48 | (n >> 3), 0xc1, which | (n & 7), count]);
    }

    /// a = a + b, of integers
    pub(crate) fn add_whole(&mut self, a: General, b: General) {
        let (a, b) = (a as u8, b as u8);
        self.bytes.extend([
            0x48 | ((b >> 3) << 2) | (a >> 3),
            0x01,
            0xc0 | ((b & 7) << 3) | (a & 7),
        ]);
    }

    /// Decrement `counter` and jump to `label` until it is 0.
    pub(crate) fn count_down(&mut self, counter: General, label: Label) {
        let n = counter as u8;
        self.bytes.extend([0x48 | (n >> 3), 0xff, 0xc8 | (n & 7)]);
        self.go_back_unless_zero(label);
    }

    /// Jump to `label` if the last result is not 0.
    pub(crate) fn go_back_unless_zero(&mut self, label: Label) {
        let distance = label.0 as i64 - (self.bytes.len() as i64 + 6);
        let distance = i32::try_from(distance).expect("loops are short");
        self.bytes.extend([0x0f, 0x85]);
        self.bytes.extend(distance.to_le_bytes());
    }

    /// Do as [`Assembler::count_down`], but leave the loop at once if rax is not 0.
    pub(crate) fn count_down_unless_flagged(&mut self, counter: General, label: Label) {
        // test rax, rax; jnz over what follows
        self.bytes.extend([0x48, 0x85, 0xc0, 0x75, 0]);
        let from = self.bytes.len();
        self.count_down(counter, label);
        self.bytes[from - 1] = (self.bytes.len() - from) as u8;
    }

    /// Encode one instruction, without bytes that follow its operands.
    fn put(&mut self, code: Code, register: Vector, second: Vector, operand: Operand) {
        self.encode(self.is_evex(), code, register, second, operand);
    }

    fn encode(
        &mut self,
        evex: bool,
        code: Code,
        register: Vector,
        second: Vector,
        operand: Operand,
    ) {
        let one = self.width == Width::One;
        let (mut prefix, mut opcode) = (code.prefix, code.opcode);
        if one && code.scalar {
            match code.map {
                1 => prefix = PF2,
                _ => opcode |= 1,
            }
        }
        let length: u8 = match self.width {
            Width::One => 0,
            Width::Four => 1,
            Width::Eight => 2,
        };
        if evex {
            self.evex(code, prefix, length, register, second, operand);
        } else {
            self.vex(code, prefix, length, register, second, operand);
        }
        self.bytes.push(opcode);
        // Short displacements of EVEX are counted in operands.
        let spread = code.opcode == Code::SPREAD.opcode && code.map == 2;
        let one = spread || matches!(operand, Operand::Number(_));
        let numbers = if one { 1 } else { self.width.numbers() as i32 };
        self.operand(register, operand, if evex { 8 * numbers } else { 1 });
    }

    fn vex(
        &mut self,
        code: Code,
        prefix: u8,
        length: u8,
        register: Vector,
        second: Vector,
        operand: Operand,
    ) {
        debug_assert!(register < 16 && second < 16);
        let last = match operand {
            Operand::Register(r) => r,
            Operand::Memory(m) => m.base as u8,
            Operand::Number(_) => unreachable!("EVEX only"),
        };
        let (r, b) = (register >> 3, last >> 3);
        let tail = ((!second & 15) << 3) | (length << 2) | prefix;
        if code.map == 1 && !code.vex_wide && b == 0 {
            self.bytes.extend([0xc5, ((r ^ 1) << 7) | tail]);
        } else {
            // Bits r, x, b are stored inverted, and there is no index register x.
            self.bytes.extend([
                0xc4,
                ((r ^ 1) << 7) | (1 << 6) | ((b ^ 1) << 5) | code.map,
                ((code.vex_wide as u8) << 7) | tail,
            ]);
        }
    }

    fn evex(
        &mut self,
        code: Code,
        prefix: u8,
        length: u8,
        register: Vector,
        second: Vector,
        operand: Operand,
    ) {
        let (b, x, broadcast) = match operand {
            Operand::Register(r) => (r >> 3 & 1, r >> 4, false),
            Operand::Memory(m) => ((m.base as u8) >> 3, 0, self.broadcasts(code)),
            Operand::Number(m) => ((m.base as u8) >> 3, 0, true),
        };
        let (r, r_high) = (register >> 3 & 1, register >> 4);
        self.bytes.extend([
            0x62,
            ((r ^ 1) << 7) | ((x ^ 1) << 6) | ((b ^ 1) << 5) | ((r_high ^ 1) << 4) | code.map,
            ((code.wide as u8) << 7) | ((!second & 15) << 3) | (1 << 2) | prefix,
            (length << 5) | ((broadcast as u8) << 4) | (((second >> 4) ^ 1) << 3),
        ]);
    }

    /// True if an operand in memory is one number, broadcast to all lanes of the vector.
    fn broadcasts(&self, code: Code) -> bool {
        self.width == Width::One && !code.scalar
    }

    fn operand(&mut self, register: Vector, operand: Operand, scale: i32) {
        let register = (register & 7) << 3;
        match operand {
            Operand::Register(r) => self.bytes.push(0xc0 | register | (r & 7)),
            Operand::Memory(Memory { base, displacement })
            | Operand::Number(Memory { base, displacement }) => {
                let base = base as u8 & 7;
                let short =
                    i8::try_from(displacement / scale).ok().filter(|_| displacement % scale == 0);
                match short {
                    Some(0) => self.bytes.push(register | base),
                    Some(short) => self.bytes.extend([0x40 | register | base, short as u8]),
                    None => {
                        self.bytes.push(0x80 | register | base);
                        self.bytes.extend(displacement.to_le_bytes());
                    }
                }
            }
        }
    }
}

impl Code {
    const fn wide_in_vex(self) -> Code {
        Code { vex_wide: true, ..self }
    }
}
