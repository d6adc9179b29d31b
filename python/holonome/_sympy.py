"""Models from SymPy: expressions become text in the language of models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy
from sympy.core.function import AppliedUndef
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from ._errors import OptionError
from ._model import Model

#: Functions of the language under the names that SymPy has for them.
_FUNCTIONS = {
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "asin",
    "acos": "acos",
    "atan": "atan",
    "atan2": "atan2",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "exp": "exp",
    "log": "log",
    "Abs": "abs",
}

#: Words that name something else in the language.
_RESERVED = frozenset(
    """parameter size coordinate momentum velocity hamiltonian lagrangian constraint integral state
    poisson let observe measure table include in of if and or not pi t sin cos tan asin acos atan atan2 sinh
    cosh tanh exp log sqrt pow abs min max round nearest sum dot cross norm outer hat matrix identity
    diag transpose trace det inverse normal uniform lambda H""".split()
)

#: Largest matrix that the language inverts.
_LARGEST_INVERSE = 6


class _Printer(StrPrinter):  # type: ignore[misc]
    """Prints expressions in the language of models."""

    printmethod = "_holonome"

    def __init__(self, names: Mapping[sympy.Basic, str]) -> None:
        super().__init__()
        self._names: dict[sympy.Basic, str] = dict(names)

    def _print_Symbol(self, expr: sympy.Basic) -> str:
        if expr not in self._names:
            raise OptionError(f"{expr} is neither a coordinate, a momentum, nor in values")
        name: str = self._names[expr]
        return name

    _print_Dummy = _print_Symbol

    def _print_Pow(self, expr: sympy.Pow, rational: bool = False) -> str:
        base, exponent = expr.base, expr.exp
        if exponent == sympy.S.Half:
            return f"sqrt({self._print(base)})"
        if exponent == -1:
            return f"1/{self.parenthesize(base, PRECEDENCE['Pow'])}"
        if exponent == -sympy.S.Half:
            return f"1/sqrt({self._print(base)})"
        shown = self.parenthesize(base, PRECEDENCE["Pow"])
        if exponent.is_Integer and exponent > 0:
            return f"{shown}^{exponent}"
        return f"{shown}^({self._print(exponent)})"

    def _print_Rational(self, expr: sympy.Rational) -> str:
        return f"{expr.p}/{expr.q}"

    def _print_Integer(self, expr: sympy.Integer) -> str:
        return str(int(expr))

    def _print_Float(self, expr: sympy.Float) -> str:
        return _decimal(float(expr))

    def _print_Pi(self, _: sympy.Basic) -> str:
        return "pi"

    def _print_Exp1(self, _: sympy.Basic) -> str:
        return "exp(1)"

    def _print_NumberSymbol(self, expr: sympy.NumberSymbol) -> str:
        return _decimal(float(expr))

    def _print_exp(self, expr: sympy.exp) -> str:
        return f"exp({self._print(expr.args[0])})"

    def _print_Max(self, expr: sympy.Max) -> str:
        return self._nested("max", expr.args)

    def _print_Min(self, expr: sympy.Min) -> str:
        return self._nested("min", expr.args)

    def _nested(self, name: str, args: Sequence[sympy.Basic]) -> str:
        first, *rest = args
        if not rest:
            return str(self._print(first))
        return f"{name}({self._print(first)}, {self._nested(name, rest)})"

    def _print_sec(self, expr: sympy.Function) -> str:
        return f"(1/cos({self._print(expr.args[0])}))"

    def _print_csc(self, expr: sympy.Function) -> str:
        return f"(1/sin({self._print(expr.args[0])}))"

    def _print_cot(self, expr: sympy.Function) -> str:
        return f"(1/tan({self._print(expr.args[0])}))"

    def _print_sign(self, expr: sympy.Function) -> str:
        x = self._print(expr.args[0])
        return f"if({x} > 0, 1, if({x} < 0, -1, 0))"

    def _print_Heaviside(self, expr: sympy.Function) -> str:
        return f"if({self._print(expr.args[0])} >= 0, 1, 0)"

    def _print_Piecewise(self, expr: sympy.Piecewise) -> str:
        (value, condition), *rest = expr.args
        if condition == sympy.true:
            return str(self._print(value))
        if not rest:
            raise OptionError(
                f"{expr} has no value where {condition} does not hold: add a last case"
            )
        other = self._print(sympy.Piecewise(*rest))
        return f"if({self._print(condition)}, {self._print(value)}, {other})"

    def _print_Relational(self, expr: sympy.core.relational.Relational) -> str:
        return f"{self._print(expr.lhs)} {expr.rel_op} {self._print(expr.rhs)}"

    def _print_And(self, expr: sympy.And) -> str:
        return " and ".join(f"({self._print(one)})" for one in expr.args)

    def _print_Or(self, expr: sympy.Or) -> str:
        return " or ".join(f"({self._print(one)})" for one in expr.args)

    def _print_not_supported(self, expr: sympy.Basic) -> str:
        raise OptionError(f"models have no {type(expr).__name__}: it is in {expr}")

    _print_Derivative = _print_not_supported
    _print_Integral = _print_not_supported
    _print_Function = _print_not_supported
    _print_MatrixBase = _print_not_supported

    def text(self, expr: sympy.Basic) -> str:
        """An expression in the language."""
        return str(self.doprint(expr)).replace("\n", " ")


# A function of the list prints by its name.
for _name in _FUNCTIONS:
    if _name not in ("exp",):

        def _print(self: _Printer, expr: sympy.Function, name: str = _FUNCTIONS[_name]) -> str:
            return f"{name}({', '.join(self._print(one) for one in expr.args)})"

        setattr(_Printer, f"_print_{_name}", _print)


def _decimal(value: float) -> str:
    text = repr(value)
    return text if any(sign in text for sign in ".en") else f"{text}.0"


def from_sympy(
    expression: Any,
    q: Any,
    p: Any = None,
    *,
    velocities: Any = None,
    constraints: Any = None,
    integrals: Mapping[str, Any] | None = None,
    observe: Mapping[str, Any] | None = None,
    values: Mapping[Any, Any] | None = None,
    time: Any = None,
    name: str = "model",
) -> Model:
    """Model of a Hamiltonian H(q, p), or of a Lagrangian L(q, q'), given by SymPy.

    Parameters
    ----------
    expression : sympy.Expr
        The Hamiltonian, if momenta are given; otherwise the Lagrangian, a polynomial of degree 2 in
        the velocities.
    q : sequence
        The coordinates: symbols, or functions of time (``dynamicsymbols``).
    p : sequence, optional
        Their momenta, in the same order.
    velocities : sequence, optional
        Symbols of the velocities in a Lagrangian; the time derivatives of ``q`` by default.
    constraints : mapping or sequence, optional
        Expressions of the coordinates that vanish, or ``Eq``, by name; without names they are
        called ``c1``, ``c2``, ...
    integrals, observe : mapping, optional
        Claimed first integrals, and quantities to record, by name; with a Lagrangian they may use
        velocities.
    values : mapping
        Values of parameters and initial values of coordinates, of momenta or velocities, by symbols
        or names; 0 for initial values that are not given.
    time : sympy.Symbol, optional
        The time; that of ``dynamicsymbols`` by default, or a symbol ``t`` that has no value.
    name : str
        Name of the model.

    Returns
    -------
    Model
        Its ``text`` is the model in the language.

    Raises
    ------
    OptionError
        If a parameter has no value; if the language has no such function; if the Lagrangian is not
        of degree 2 in the velocities, or its mass matrix is singular.

    Examples
    --------
    >>> import holonome as ho, sympy
    >>> q, p, k = sympy.symbols("q p k")
    >>> model = ho.from_sympy((p**2 + k*q**2)/2, [q], [p], values={k: 4, q: 1})
    >>> print(model.text)
    parameter k = 4
    coordinate q = 1
    momentum p of q = 0
    hamiltonian k*q^2/2 + p^2/2
    >>> from sympy.physics.mechanics import dynamicsymbols
    >>> theta, g = dynamicsymbols("theta"), sympy.Symbol("g")
    >>> pendulum = ho.from_sympy(
    ...     theta.diff()**2/2 + g*sympy.cos(theta), [theta], values={g: 1, theta: 1}
    ... )
    >>> pendulum.run(until=10).drift["H"].largest < 1e-14
    True
    """
    return _Writer(q, p, velocities, time, values or {}, expression).model(
        expression, constraints, integrals or {}, observe or {}, name
    )


class _Writer:
    """Writes a model whose coordinates, momenta and velocities have names."""

    def __init__(
        self, q: Any, p: Any, velocities: Any, time: Any, values: Mapping[Any, Any], of: Any
    ) -> None:
        self.q = _list(q)
        self.time = sympy.Symbol("t") if time is None else time
        if time is None and any(isinstance(one, AppliedUndef) for one in self.q):
            self.time = next(one.args[0] for one in self.q if isinstance(one, AppliedUndef))
        self.is_lagrangian = p is None
        given = [one.diff(self.time) if _moves(one) else None for one in self.q]
        self.velocities = _list(velocities) if velocities is not None else given
        if self.is_lagrangian and None in self.velocities:
            raise OptionError(
                "a Lagrangian of symbols needs velocities=[…]; for a Hamiltonian give the momenta p"
            )
        self.p = [sympy.Dummy(f"p_{_plain(str(_head(one)))}") for one in self.q]
        if p is not None:
            self.p = _list(p)
        if len(self.p) != len(self.q) or len(self.velocities) != len(self.q):
            count = len(self.p) if p is not None else len(self.velocities)
            raise OptionError(f"{len(self.q)} coordinates have {count} momenta or velocities")
        self.names: dict[sympy.Basic, str] = {}
        # Functions of time become symbols; derivatives first, as they contain the functions.
        self.symbols: dict[sympy.Basic, sympy.Symbol] = {}
        self.dots = [sympy.Dummy(f"v_{_plain(str(_head(one)))}") for one in self.q]
        for one, dot in zip(self.velocities, self.dots):
            if one is not None:
                self.symbols[one] = dot
        for one in [*self.q, *self.p]:
            symbol = one if isinstance(one, sympy.Symbol) else sympy.Dummy(str(_head(one)))
            if symbol is not one:
                self.symbols[one] = symbol
            self._name(symbol, str(symbol.name))
        self.names[self.time] = "t"
        self.values = {self._key(key): value for key, value in values.items()}

    def _name(self, symbol: sympy.Basic, wanted: str) -> None:
        name = _plain(wanted)
        while name in self.names.values() or name in _RESERVED:
            name += "_"
        self.names[symbol] = name

    def _key(self, key: Any) -> Any:
        """The symbol of a value that is given by symbol or name."""
        if isinstance(key, str):
            known = [*self.q, *self.p, *(one for one in self.velocities if one is not None)]
            for one in known:
                if str(one) == key or str(_head(one)) == key:
                    return self.symbols.get(one, one)
            return sympy.Symbol(key)
        return self.symbols.get(key, key)

    def plain(self, expression: Any) -> sympy.Expr:
        """An expression with symbols in place of functions of time."""
        found = sympy.sympify(expression)
        if isinstance(found, sympy.Equality):
            found = found.lhs - found.rhs
        derivatives = {
            one: dot for one, dot in self.symbols.items() if isinstance(one, sympy.Derivative)
        }
        return found.subs(derivatives).subs(self.symbols)

    def model(
        self,
        expression: Any,
        constraints: Any,
        integrals: Mapping[str, Any],
        observe: Mapping[str, Any],
        name: str,
    ) -> Model:
        main = self.plain(expression)
        rows = _named(constraints)
        claims = {key: self.plain(one) for key, one in integrals.items()}
        shown = {key: self.plain(one) for key, one in observe.items()}
        equations = [self.plain(one) for one in rows.values()]
        everything = [main, *equations, *claims.values(), *shown.values()]
        self._refuse_velocities([*equations, *([] if self.is_lagrangian else everything)])
        parameters = self._parameters(everything)
        for symbol in parameters:
            self._name(symbol, str(symbol.name))
        printer = _Printer({**self.names})
        lines = [f"parameter {self.names[symbol]} = {self._value(symbol)}" for symbol in parameters]
        legendre = _Legendre(self, main, printer) if self.is_lagrangian else None
        q = [self.symbols.get(one, one) for one in self.q]
        p = [self.symbols.get(one, one) for one in self.p]
        lines += [f"coordinate {self.names[one]} = {self._value(one, 0)}" for one in q]
        starts = legendre.momenta(parameters) if legendre else {}
        lines += [
            f"momentum {self.names[own]} of {self.names[one]} = {starts.get(own) or self._value(own, 0)}"
            for one, own in zip(q, p)
        ]
        if legendre:
            lines += legendre.lines
            if any(one.has(*self.dots) for one in [*claims.values(), *shown.values()]):
                lines += legendre.velocity_lines()
                printer = _Printer({**self.names})
        hamiltonian = legendre.hamiltonian if legendre else printer.text(main)
        lines.append(f"hamiltonian {hamiltonian}")
        for key, one in rows.items():
            left, right = (printer.text(self.plain(side)) for side in _sides(one))
            lines.append(f"constraint {key} : {left} = {right}")
        lines += [f"integral {key} = {printer.text(one)}" for key, one in claims.items()]
        lines += [f"observe {key} = {printer.text(one)}" for key, one in shown.items()]
        return Model("\n".join(lines), name=name)

    def _refuse_velocities(self, expressions: Iterable[sympy.Expr]) -> None:
        for one in expressions:
            if one.has(*self.dots):
                raise OptionError(
                    f"{one} has velocities: constraints are equations of positions, and Hamiltonians of momenta"
                )

    def _parameters(self, expressions: Sequence[sympy.Expr]) -> list[sympy.Symbol]:
        known = {*self.names, *self.dots}
        free = set().union(*(one.free_symbols for one in expressions)) - known
        unset = sorted((str(one) for one in free if one not in self.values))
        if unset:
            raise OptionError(
                f"values: {', '.join(unset)} have no value, as values={{…}} gives them"
            )
        unknown = [key for key in self.values if key not in known and key not in free]
        if unknown:
            raise OptionError(f"values: {unknown[0]} is in no formula")
        return sorted(free, key=lambda one: str(one.name))

    def _value(self, symbol: sympy.Symbol, default: Any = None) -> str:
        value = self.values.get(symbol, default)
        if isinstance(value, str):
            return value
        return _Printer({}).text(sympy.sympify(value))


class _Legendre:
    """The Hamiltonian of a Lagrangian of degree 2 in the velocities, L = v.M v/2 + b.v - V: with
    u = p - b it is u.inverse(M) u/2 + V."""

    def __init__(self, writer: _Writer, lagrangian: sympy.Expr, printer: _Printer) -> None:
        self.writer, self.lagrangian = writer, lagrangian
        dots = writer.dots
        self.mass = sympy.hessian(lagrangian, dots)
        at_rest = {dot: 0 for dot in dots}
        self.linear = [sympy.diff(lagrangian, dot).subs(at_rest) for dot in dots]
        potential = -lagrangian.subs(at_rest)
        quadratic = sum(
            self.mass[j, k] * dots[j] * dots[k] / 2
            for j in range(len(dots))
            for k in range(len(dots))
        )
        rest = (
            lagrangian - quadratic - sum(b * dot for b, dot in zip(self.linear, dots)) + potential
        )
        if self.mass.has(*dots) or sympy.simplify(rest) != 0:
            raise OptionError("the Lagrangian is not a polynomial of degree 2 in the velocities")
        self.mass = self.mass.applyfunc(sympy.simplify)
        momenta = [writer.symbols.get(one, one) for one in writer.p]
        self.lines: list[str] = []
        kinetic, self.blocks = [], _blocks(self.mass)
        for k, block in enumerate(self.blocks):
            number = "" if len(self.blocks) == 1 else str(k + 1)
            pairs = [(momenta[j], self.linear[j]) for j in block]
            kinetic.append(self._kinetic(block, pairs, number, printer))
        shown = printer.text(potential)
        # The sum goes on with the terms of V, of which the first may be negative.
        rest = f" - {shown[1:]}" if shown.startswith("-") else f" + {shown}"
        self.hamiltonian = " + ".join(kinetic) + ("" if shown == "0" else rest)

    def _kinetic(
        self,
        block: Sequence[int],
        pairs: Sequence[tuple[sympy.Basic, sympy.Expr]],
        number: str,
        printer: _Printer,
    ) -> str:
        mass = self.mass.extract(list(block), list(block))
        if mass.det(method="berkowitz").is_zero:
            raise OptionError(
                "the mass matrix of the Lagrangian is singular: "
                + f"nothing moves {', '.join(str(self.writer.q[j]) for j in block)}"
            )
        moved = [printer.text(own - b) for own, b in pairs]
        if len(block) == 1:
            return f"{_grouped(moved[0])}^2/(2*{_grouped(printer.text(mass[0, 0]))})"
        m, u = self._free(f"M{number}"), self._free(f"u{number}")
        if len(block) > _LARGEST_INVERSE:
            return self._eliminated(mass, moved, m, u, printer)
        rows = (", ".join(printer.text(one) for one in mass.row(j)) for j in range(len(block)))
        self.lines.append(f"let {m} = matrix({', '.join(f'({row})' for row in rows)})")
        self.lines.append(f"let {u} = ({', '.join(moved)})")
        return f"dot({u}, inverse({m})*{u})/2"

    def _eliminated(
        self, mass: sympy.Matrix, moved: Sequence[str], m: str, u: str, printer: _Printer
    ) -> str:
        """u.inverse(M) u/2 of a larger matrix by its factors L D L^T: sum of z^2/(2 d) with L z = u."""
        n = mass.rows
        d: list[str] = []
        z: list[str] = []
        factors: dict[tuple[int, int], str] = {}
        for j in range(n):
            terms = [f"{factors[j, k]}^2*{d[k]}" for k in range(j) if (j, k) in factors]
            self._let(d, f"{m}_d{j + 1}", [printer.text(mass[j, j])], terms)
            terms = [f"{factors[j, k]}*{z[k]}" for k in range(j) if (j, k) in factors]
            self._let(z, f"{u}_z{j + 1}", [moved[j]], terms)
            for i in range(j + 1, n):
                terms = [
                    f"{factors[i, k]}*{factors[j, k]}*{d[k]}"
                    for k in range(j)
                    if (i, k) in factors and (j, k) in factors
                ]
                if mass[i, j] == 0 and not terms:
                    continue
                entry: list[str] = []
                self._let(entry, f"{m}_l{i + 1}_{j + 1}", [printer.text(mass[i, j])], terms, d[j])
                factors[i, j] = entry[0]
        return " + ".join(f"{own}^2/(2*{pivot})" for own, pivot in zip(z, d))

    def _let(
        self,
        names: list[str],
        wanted: str,
        first: list[str],
        terms: Sequence[str],
        over: str | None = None,
    ) -> None:
        name = self._free(wanted)
        value = " - ".join([_grouped(first[0]), *terms])
        self.lines.append(f"let {name} = {value if over is None else f'({value})/{over}'}")
        names.append(name)

    def _free(self, wanted: str) -> str:
        name = wanted
        while name in self.writer.names.values() or name in _RESERVED:
            name += "_"
        self.writer.names[sympy.Dummy(name)] = name
        return name

    def velocity_lines(self) -> list[str]:
        """Definitions of the velocities, v = inverse(M) u, which take their names."""
        lines = []
        for k, block in enumerate(self.blocks):
            number = "" if len(self.blocks) == 1 else str(k + 1)
            if len(block) > _LARGEST_INVERSE:
                raise OptionError("observables of velocities need a mass matrix of 6 by 6 at most")
            v = self._free(f"v{number}")
            own = self.writer
            if len(block) == 1:
                j = block[0]
                p = own.symbols.get(own.p[j], own.p[j])
                printer = _Printer(own.names)
                moved, mass = printer.text(p - self.linear[j]), printer.text(self.mass[j, j])
                lines.append(f"let {v} = {_grouped(moved)}/{_grouped(mass)}")
                own.names[own.dots[j]] = v
                continue
            m, u = (f"{letter}{number}" for letter in "Mu")
            lines.append(f"let {v} = inverse({m})*{u}")
            own.names.update((own.dots[j], f"{v}[{place + 1}]") for place, j in enumerate(block))
        return lines

    def momenta(self, parameters: Sequence[sympy.Symbol]) -> dict[sympy.Basic, str]:
        """Initial momenta of the initial velocities, p = M v + b."""
        writer = self.writer
        given = [writer.values.get(dot) for dot in writer.dots]
        momenta = [writer.symbols.get(one, one) for one in writer.p]
        if any(writer.values.get(own) is not None for own in momenta):
            if any(value is not None for value in given):
                raise OptionError("values: give the initial velocities, or the momenta, not both")
            return {}
        numbers: dict[sympy.Basic, Any] = {one: writer.values[one] for one in parameters}
        q = [writer.symbols.get(one, one) for one in writer.q]
        numbers.update((one, writer.values.get(one, 0)) for one in q)
        numbers[writer.time] = 0
        numbers = {one: sympy.sympify(value) for one, value in numbers.items()}
        v = sympy.Matrix([sympy.sympify(0 if value is None else value) for value in given])
        # Values may use one another: parameters first.
        start = self.mass * v + sympy.Matrix(self.linear)
        found = {}
        for own, value in zip(momenta, start):
            for _ in range(3):
                value = value.subs(numbers)
            found[own] = _Printer({}).text(sympy.nsimplify(value) if value.is_Rational else value)
        return found


def _list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, Iterable) else [given]


def _head(one: Any) -> Any:
    """Name of a function of time, or the symbol itself."""
    return one.func if isinstance(one, AppliedUndef) else one


def _moves(one: Any) -> bool:
    return isinstance(one, AppliedUndef)


def _plain(name: str) -> str:
    """A name without what the language has other uses for."""
    found = re.sub(r"\W+", "_", name.replace("{", "").replace("}", "")).strip("_") or "x"
    return f"x{found}" if found[0].isdigit() else found


def _grouped(text: str) -> str:
    """A text that stays together in a product or a power."""
    return text if re.fullmatch(r"\w+", text) else f"({text})"


def _sides(constraint: Any) -> tuple[Any, Any]:
    """Both sides of an equation; those of an expression that vanishes."""
    found = sympy.sympify(constraint)
    return (found.lhs, found.rhs) if isinstance(found, sympy.Equality) else (found, 0)


def _named(constraints: Any) -> dict[str, Any]:
    if constraints is None:
        return {}
    if isinstance(constraints, Mapping):
        return dict(constraints)
    return {f"c{k + 1}": one for k, one in enumerate(_list(constraints))}


def _blocks(matrix: sympy.Matrix) -> list[list[int]]:
    """Rows that a matrix couples, in their order."""
    left, blocks = set(range(matrix.rows)), []
    while left:
        block, todo = set(), [min(left)]
        while todo:
            j = todo.pop()
            if j in block:
                continue
            block.add(j)
            todo += [k for k in left if matrix[j, k] != 0 and k not in block]
        left -= block
        blocks.append(sorted(block))
    return blocks
