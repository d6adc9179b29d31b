//! `spline(TABLE.x, TABLE.y, EXPR)`, `linear(…)`, `hold(…)`: interpolation of a table's columns.

use crate::elaborate::Elaborator;
use crate::elaborate::expression::{self, CheckedExpression, Ex, Kind};
use crate::elaborate::interpolation::{Ends, Interpolation};
use crate::elaborate::model::Knots;
use crate::elaborate::shape::Shape;
use crate::graph::op::{Binary, Unary};
use crate::syntax::ast;
use crate::syntax::diagnostic::Diagnostic;
use crate::syntax::print;
use crate::syntax::span::Span;

/// The functions, with their usage.
pub(super) const INTERPOLATIONS: [(&str, &str); 3] = [
    (
        "spline",
        "spline(TABLE.x, TABLE.y, EXPR), with a fourth word natural, clamped, periodic or not-a-knot",
    ),
    ("linear", "linear(TABLE.x, TABLE.y, EXPR)"),
    ("hold", "hold(TABLE.x, TABLE.y, EXPR)"),
];

/// Conditions at the ends of a spline, as the dump of their word as an expression.
const ENDS: [(&str, Ends); 4] = [
    ("natural", Ends::Natural),
    ("clamped", Ends::Clamped),
    ("periodic", Ends::Periodic),
    ("(not (- (- a) knot))", Ends::NotAKnot),
];

impl Elaborator<'_> {
    /// A call of one of the functions, whose usage is this.
    pub(super) fn interpolation(
        &mut self,
        (name, usage): (&str, &str),
        arguments: &[ast::Expr],
        span: Span,
    ) -> Option<Ex> {
        let (x, y, at, word) = match arguments {
            [x, y, at] => (x, y, at, None),
            [x, y, at, word] if name == "spline" => (x, y, at, Some(word)),
            _ => {
                let message = format!("{name} does not take {} arguments", arguments.len());
                let finding = Diagnostic::error(message, span, "wrong number of arguments");
                return self.refuse(finding.help(format!("write {usage}")));
            }
        };
        let kind = match name {
            "linear" => Interpolation::Linear,
            "hold" => Interpolation::Hold,
            _ => Interpolation::Spline(self.ends(word, usage)?),
        };
        let (x_column, y_column) = (self.whole_column(x, usage), self.whole_column(y, usage));
        let at = self.scalar(at, &format!("the argument of {name}"));
        let ((table, knots), (_, values), at) = (x_column?, y_column?, at?);
        self.check_knots((&table, &knots, &values), kind, (x.span, y.span))?;
        if matches!(at.kind, Kind::Time) && self.scope.allowed & expression::TIME != 0 {
            let period = kind.is_periodic().then(|| knots[knots.len() - 1] - knots[0]);
            let jumps = kind == Interpolation::Hold;
            self.knots.push(Knots { table, times: knots.clone(), period, jumps });
        }
        Some(interpolated(kind, (&knots, &values), at, span))
    }

    fn ends(&mut self, word: Option<&ast::Expr>, usage: &str) -> Option<Ends> {
        let Some(word) = word else { return Some(Ends::Natural) };
        let text = print::expression(word);
        let known = ENDS.iter().find(|(known, _)| *known == text).map(|(_, ends)| *ends);
        known.or_else(|| {
            let message = "a spline's ends are natural, clamped, periodic or not-a-knot";
            let finding = Diagnostic::error(message, word.span, "not one of these words");
            self.refuse(finding.help(format!("write {usage}")))
        })
    }

    /// Name of the table and numbers of a column that is given as `TABLE.COLUMN`.
    fn whole_column(&mut self, e: &ast::Expr, usage: &str) -> Option<(String, Vec<f64>)> {
        if let ast::ExprKind::Member(of, column) = &e.kind
            && let Some(number) = self.table_of(of)
        {
            let at = self.column_of(number, column)?;
            let table = &self.tables[number];
            return Some((table.name.clone(), table.columns[at].1.clone()));
        }
        let finding =
            Diagnostic::error("this is not the column of a table", e.span, "not a column");
        self.refuse(finding.help(format!("declare `table NAME = \"file.csv\"` and write {usage}")))
    }

    /// Refuses knots that do not increase, and values that are no periodic function.
    fn check_knots(
        &mut self,
        (table, x, y): (&str, &[f64], &[f64]),
        kind: Interpolation,
        (at_x, at_y): (Span, Span),
    ) -> Option<()> {
        if x.len() != y.len() || x.len() < 2 {
            let message = format!("{} knots with {} values are no curve", x.len(), y.len());
            let finding = Diagnostic::error(message, at_x, "two or more, as many of both");
            return self.refuse(finding.help("take both columns from one table"));
        }
        if let Some(row) = x.windows(2).position(|pair| pair[1] <= pair[0]) {
            let (before, after) = (x[row], x[row + 1]);
            let message = format!(
                "row {} of table '{table}' does not increase: {after} comes after {before}",
                row + 2
            );
            let finding = Diagnostic::error(message, at_x, "knots increase");
            return self.refuse(finding.help("sort the rows of the table"));
        }
        let (first, last) = (y[0], y[y.len() - 1]);
        if kind.is_periodic() && first != last {
            let message =
                format!("the values of table '{table}' begin with {first} and end with {last}");
            let finding = Diagnostic::error(message, at_y, "not periodic");
            return self.refuse(finding.help("repeat the first value in the last row"));
        }
        Some(())
    }
}

/// The polynomial between two knots at which `at` is.
fn interpolated(kind: Interpolation, (x, y): (&[f64], &[f64]), at: Ex, span: Span) -> Ex {
    let number = |value: f64| CheckedExpression::number(value, span);
    let scalar = |kind: Kind| CheckedExpression::new(kind, Shape::Scalar, span);
    let minus = |a: &Ex, b: Ex| scalar(Kind::Add(vec![(false, a.clone()), (true, b)]));
    let degree = kind.degree();
    let polynomials = kind.polynomials(x, y);
    let leaf = |polynomial: &[f64], origin: f64| -> Ex {
        let numbers = polynomial[..=degree].iter().copied().chain([origin]);
        let entries: Vec<Ex> = numbers.map(number).collect();
        let shape = Shape::Vector(entries.len());
        CheckedExpression::new(Kind::Stack(entries), shape, span)
    };
    let mut leaves: Vec<Ex> = polynomials.iter().zip(x).map(|(p, &x)| leaf(p, x)).collect();
    let last = x.len() - 1;
    let (place, borders) = match kind.is_periodic() {
        true => {
            let period = x[last] - x[0];
            let from_middle = minus(&at, number(x[0] + 0.5 * period));
            let turns = scalar(Kind::Divide(from_middle, number(period)));
            let turns = scalar(Kind::Unary(Unary::Round, turns));
            (minus(&at, scalar(Kind::Scale(number(period), turns))), &x[1..last])
        }
        false => {
            leaves.insert(0, leaf(&[y[0], 0.0, 0.0, 0.0], x[0]));
            leaves.push(leaf(&[y[last], 0.0, 0.0, 0.0], x[last]));
            (at, x)
        }
    };
    let selected = selected(&leaves, borders, &place, span);
    let entry = |k: usize| scalar(Kind::Component(selected.clone(), vec![number((k + 1) as f64)]));
    let from_knot = minus(&place, entry(degree + 1));
    (0..degree).rev().fold(entry(degree), |rest, k| {
        let rest = scalar(Kind::Scale(from_knot.clone(), rest));
        scalar(Kind::Add(vec![(false, entry(k)), (false, rest)]))
    })
}

/// The leaf between whose borders `at` is, found by halves.
fn selected(leaves: &[Ex], borders: &[f64], at: &Ex, span: Span) -> Ex {
    let [first, _, ..] = leaves else { return leaves[0].clone() };
    let middle = leaves.len() / 2;
    let border = CheckedExpression::number(borders[middle - 1], span);
    let is_before = Kind::Binary(Binary::Less, at.clone(), border);
    let is_before = CheckedExpression::new(is_before, Shape::Condition, span);
    let before = selected(&leaves[..middle], &borders[..middle - 1], at, span);
    let behind = selected(&leaves[middle..], &borders[middle..], at, span);
    CheckedExpression::new(Kind::Select(is_before, before, behind), first.shape, span)
}
