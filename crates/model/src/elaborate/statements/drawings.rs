//! Pictures: forms, the formulas of their places, their colours and labels.

use super::quantities::FormulaLowering;
use crate::elaborate::expression::index_set::IndexSet;
use crate::elaborate::expression::{self, CheckedExpression, Ex};
use crate::elaborate::lower::Purpose;
use crate::elaborate::model::{Argument, Colour, Drawing, FORMS, Form, Quantity};
use crate::elaborate::names::{FamilyMember, Scope, Symbol};
use crate::elaborate::shape::Shape;
use crate::elaborate::{CheckedFormula, Elaborator};
use crate::syntax::ast::{
    BinaryOperator, Expr, ExprKind, IndexSetExpr, Name, RangeExpr, Statement,
};
use crate::syntax::diagnostic::{Diagnostic, shorten};
use crate::syntax::span::Span;

/// Number of pieces into which the range of a surface's parameter is divided.
const PIECES: f64 = 24.0;

/// Names of colours: those of CSS that have one word of common English.
#[rustfmt::skip]
const COLOURS: [&str; 36] = [
    "black", "white", "gray", "grey", "silver", "red", "orange", "gold", "yellow", "green", "blue", "navy", "purple", "violet",
    "magenta", "cyan", "teal", "turquoise", "brown", "chocolate", "tan", "pink", "salmon", "coral", "crimson", "maroon",
    "olive", "lime", "indigo", "orchid", "khaki", "beige", "ivory", "azure", "lavender", "skyblue",
];

/// A `draw` that has been checked but not lowered.
pub(super) struct CheckedDrawing {
    form: Form,
    span: Span,
    /// Number of indices of the family.
    indices: usize,
    arguments: Vec<CheckedFormula>,
    colour: Option<CheckedColour>,
    labels: Vec<Name>,
}

enum CheckedColour {
    Named(String),
    Of(CheckedFormula),
}

/// Ranges of a family, or the family for all of whose members something stands.
enum Over<'s> {
    Ranges(&'s IndexSetExpr),
    Whole(usize, Span),
}

impl Elaborator<'_> {
    /// A drawing, or what a camera does.
    pub(super) fn drawing(&mut self, number: usize) -> Option<CheckedDrawing> {
        let statement = self.statement(number);
        let Statement { reference, family, values, .. } = statement;
        let Some(form) = Form::named(&reference.text) else {
            let message = format!("'{}' is nothing that can be drawn", shorten(&reference.text));
            let finding = Diagnostic::error(message, reference.span, "not a form");
            let forms = FORMS.iter().filter(|row| !row.form.is_camera()).map(|row| row.name);
            let all: Vec<&str> = forms.clone().collect();
            return self.refuse(
                finding.suggest(&reference.text, forms, || format!("forms are {}", all.join(", "))),
            );
        };
        let wanted = self.arguments_of(form, statement)?;
        if form.is_camera() && !family.ranges.is_empty() {
            let finding =
                Diagnostic::error("a camera has no indices", statement.span, "one camera");
            return self.refuse(finding.help("write draw camera follow r[1], with a member"));
        }
        // A polyline through a whole family has its members as points, other forms stand at each.
        let whole = match family.ranges.is_empty() {
            true => values.iter().find_map(|e| self.whole_family_in(e)),
            false => None,
        };
        let ranged = statement.drawn_over.iter().any(|over| !over.ranges.is_empty());
        let joins = form == Form::Polyline && values.len() == 1 && !ranged;
        let (over, inner) = match whole {
            Some((family, span)) if joins => {
                (Over::Ranges(&statement.family), Some((family, span)))
            }
            Some((family, span)) if !form.is_camera() => (Over::Whole(family, span), None),
            _ => (Over::Ranges(&statement.family), None),
        };
        let mut arguments = Vec::new();
        for (k, argument) in wanted.into_iter().enumerate() {
            arguments.push(self.drawn((number, k), argument, (&over, inner)));
        }
        let arguments = arguments.into_iter().collect::<Option<Vec<_>>>()?;
        self.check_dimensions(form, &arguments, reference.span)?;
        let colour = match statement.clause("colour") {
            Some(e) if matches!(form, Form::Trail) => {
                let finding = Diagnostic::error("a trail has one colour", e.span, "a number");
                return self.refuse(finding.help("write colour \"red\""));
            }
            Some(e) => {
                let set = self.drawn_family(&over)?;
                let value = self.scalar(e, "the number of a colour")?;
                let name = reference.clone();
                Some(CheckedColour::Of(CheckedFormula { name, set, value }))
            }
            None => match &statement.texts_of("colour")[..] {
                [name, ..] => Some(CheckedColour::Named(self.colour(name)?)),
                [] => None,
            },
        };
        let indices = self.drawn_family(&over)?.ranges.len();
        let labels: Vec<Name> = statement.texts_of("label").into_iter().cloned().collect();
        let names: Vec<String> =
            self.scope.locals.iter().map(|(name, _)| name.clone()).take(indices).collect();
        labels.iter().try_for_each(|label| self.check_label(label, &names))?;
        Some(CheckedDrawing { form, span: reference.span, indices, arguments, colour, labels })
    }

    /// What each argument of a form is.
    fn arguments_of(&mut self, form: Form, statement: &Statement) -> Option<Vec<Argument>> {
        let (row, count) = (form.row(), statement.values.len());
        if row.arguments == [Argument::Points] && count > 0 {
            return Some(vec![Argument::Points; count]);
        }
        if row.arguments.len() != count {
            let message =
                format!("'{}' takes {} values, not {count}", row.name, row.arguments.len());
            let finding = Diagnostic::error(message, statement.reference.span, "these values");
            return self.refuse(finding.help(format!("write draw {}", row.usage)));
        }
        Some(row.arguments.to_vec())
    }

    /// Opens a scope for formulas of a drawing, with its family's indices.
    fn drawn_family(&mut self, over: &Over) -> Option<IndexSet> {
        self.scope = Scope::new(expression::FORMULA | expression::FOLLOWING, "a drawing");
        match over {
            Over::Ranges(ranges) => self.index_set(ranges),
            Over::Whole(number, span) => self.all_members(*number, *span),
        }
    }

    /// Binds the indices of a variable's members, for which the family's name then stands.
    fn all_members(&mut self, number: usize, span: Span) -> Option<IndexSet> {
        let family = self.variables[number].family.clone()?;
        let depth = self.scope.locals.len();
        let set = self.bind_members(&family.indices, &family, span);
        let indices = self.scope.locals[depth..].iter().map(|(_, index)| index.clone()).collect();
        self.scope.member = Some(FamilyMember { bounds: family.bounds, indices });
        Some(set)
    }

    /// Argument `k` of a form.
    fn drawn(
        &mut self,
        (number, k): (usize, usize),
        argument: Argument,
        (over, inner): (&Over, Option<(usize, Span)>),
    ) -> Option<CheckedFormula> {
        let Statement { reference, values, drawn_over, .. } = self.statement(number);
        let (value, own) = (&values[k], &drawn_over[k]);
        let mut set = self.drawn_family(over)?;
        match (argument, own.ranges.len(), inner) {
            (Argument::Surface, 2, _) => set = set.product(&self.surface(own)?),
            (Argument::Points, 1.., _) => set = set.product(&self.index_set(own)?),
            (Argument::Points, 0, Some((family, span))) => {
                set = set.product(&self.all_members(family, span)?)
            }
            (Argument::Surface, count, _) | (_, count @ 1.., _) => {
                let wanted = if argument == Argument::Surface { 2 } else { 0 };
                let message = format!("'{}' has {wanted} ranges here, not {count}", reference.text);
                let finding = Diagnostic::error(message, value.span, "the ranges of this");
                let usage = Form::named(&reference.text)?.row().usage;
                return self.refuse(finding.help(format!("write draw {usage}")));
            }
            _ => {}
        }
        let value = self.value_of(number, value)?;
        self.check_argument(argument, &value)?;
        Some(CheckedFormula { name: reference.clone(), set, value })
    }

    /// Binds the parameters of a surface, in equal pieces from one end of their ranges to the other.
    fn surface(&mut self, ranges: &IndexSetExpr) -> Option<IndexSet> {
        let number = |value: f64, span: Span| Expr { kind: ExprKind::Number(value), span };
        let steps = ranges.ranges.iter().map(|range| {
            let span = range.name.span;
            let (low, high) = (number(0.0, span), number(PIECES, span));
            RangeExpr { name: range.name.clone(), low, high }
        });
        let set = self.index_set(&IndexSetExpr { ranges: steps.collect(), filter: None })?;
        let mut values: Vec<(String, Ex)> = Vec::new();
        for range in &ranges.ranges {
            let span = range.name.span;
            let of = |operator, left: Expr, right: Expr| Expr {
                kind: ExprKind::Binary(operator, span, Box::new(left), Box::new(right)),
                span,
            };
            let step = Expr { kind: ExprKind::Name(range.name.text.clone()), span };
            let share = of(BinaryOperator::Divide, step, number(PIECES, span));
            let length = of(BinaryOperator::Subtract, range.high.clone(), range.low.clone());
            let way = of(BinaryOperator::Multiply, length, share);
            let value = of(BinaryOperator::Add, range.low.clone(), way);
            values.push((range.name.text.clone(), self.scalar(&value, "a parameter")?));
        }
        self.scope.locals.extend(values);
        Some(set)
    }

    /// Refuses a value that is not what an argument should be.
    fn check_argument(&mut self, argument: Argument, value: &CheckedExpression) -> Option<()> {
        use Shape::{Matrix, Scalar, Vector};
        let (fits, what) = match argument {
            Argument::Point | Argument::Points | Argument::Surface => {
                (matches!(value.shape, Vector(2 | 3)), "a point is a vector of 2 or 3 components")
            }
            Argument::Vector | Argument::Sides => {
                (matches!(value.shape, Vector(2 | 3)), "a vector of 2 or 3 components is wanted")
            }
            Argument::Length => (value.shape == Scalar, "a length is a scalar"),
            Argument::Attitude => (
                matches!(value.shape, Scalar | Matrix(2, 2) | Matrix(3, 3) | Vector(4)),
                "an attitude is a rotation matrix, a unit quaternion, or an angle in the plane",
            ),
        };
        if fits {
            return Some(());
        }
        let label = format!("this has the shape {}", value.shape);
        self.refuse(Diagnostic::error(what, value.span, label))
    }

    /// Refuses arguments in the plane beside arguments in space.
    fn check_dimensions(&mut self, form: Form, all: &[CheckedFormula], span: Span) -> Option<()> {
        let dimensions: Vec<(usize, Span)> = all
            .iter()
            .filter_map(|CheckedFormula { value, .. }| match value.shape {
                Shape::Vector(k @ (2 | 3)) => Some((k, value.span)),
                Shape::Matrix(k, _) => Some((k, value.span)),
                Shape::Vector(_) => Some((3, value.span)),
                Shape::Scalar if form == Form::Box => Some((2, value.span)),
                _ => None,
            })
            .collect();
        let [(first, at), rest @ ..] = &dimensions[..] else { return Some(()) };
        let Some((_, other)) = rest.iter().find(|(dimension, _)| dimension != first) else {
            return Some(());
        };
        let message = format!("'{}' mixes the plane and space", form.row().name);
        let finding = Diagnostic::error(message, span, "one of both is wanted");
        self.refuse(finding.related(*at, format!("{first} dimensions")).related(*other, "others"))
    }

    /// A colour by its name, or as `#rrggbb`.
    fn colour(&mut self, name: &Name) -> Option<String> {
        let small = name.text.to_lowercase();
        let digits = small.strip_prefix('#').unwrap_or("");
        let is_code =
            matches!(digits.len(), 3 | 6) && digits.chars().all(|c| c.is_ascii_hexdigit());
        if is_code || COLOURS.contains(&small.as_str()) {
            return Some(small);
        }
        let message = format!("unknown colour '{}'", shorten(&name.text));
        let finding = Diagnostic::error(message, name.span, "not a colour");
        self.refuse(finding.suggest(&small, COLOURS, || {
            "write a name such as \"red\", or \"#rrggbb\"".to_string()
        }))
    }

    /// Refuses a label that shows something else than indices.
    fn check_label(&mut self, label: &Name, indices: &[String]) -> Option<()> {
        for (_, name) in places(&label.text) {
            if !indices.iter().any(|index| index == name) {
                let message = format!("the label shows '{{{name}}}', and there is no such index");
                let finding = Diagnostic::error(message, label.span, "which index?");
                return self.refuse(
                    finding.help(match indices {
                        [] => "a family has indices: draw[i in 1..n] sphere(r[i], 1) label \"{i}\""
                            .to_string(),
                        _ => format!("indices here are {}", indices.join(", ")),
                    }),
                );
            }
        }
        Some(())
    }

    /// The first family of variables in an expression that has no indices there.
    fn whole_family_in(&self, e: &Expr) -> Option<(usize, Span)> {
        match &e.kind {
            ExprKind::Name(name) => {
                let Symbol::Variable(number) = self.symbols.get(name)?.symbol else { return None };
                let family = self.variables[number].family.as_ref();
                family.is_some_and(|family| !family.indices.is_empty()).then_some((number, e.span))
            }
            // Sums have indices of their own.
            ExprKind::Sum(..) => None,
            ExprKind::Index(of, indices) => {
                let named = matches!(of.kind, ExprKind::Name(_));
                let own = if named { None } else { self.whole_family_in(of) };
                own.or_else(|| indices.iter().find_map(|e| self.whole_family_in(e)))
            }
            _ => {
                let mut found = None;
                e.for_each_part(&mut |part| found = found.or_else(|| self.whole_family_in(part)));
                found
            }
        }
    }
}

/// Places `{NAME}` of a label: where each begins, and the name.
fn places(label: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (start, _) in label.match_indices('{') {
        if let Some(length) = label[start..].find('}') {
            found.push((start, &label[start + 1..start + length]));
        }
    }
    found
}

impl FormulaLowering<'_> {
    /// Lowers a drawing.
    pub(super) fn drawing(&mut self, drawing: &CheckedDrawing) -> Option<Drawing> {
        let CheckedDrawing { form, span, indices, arguments, colour, labels } = drawing;
        let arguments = self.quantities(Purpose::Motion, arguments.iter())?;
        let colour = match colour {
            Some(CheckedColour::Named(name)) => Some(Colour::Named(name.clone())),
            Some(CheckedColour::Of(checked)) => {
                Some(Colour::Of(self.quantity(Purpose::Motion, checked)?))
            }
            None => None,
        };
        let (points, members) = members_of(&arguments[0], *indices);
        let names = &arguments[0].indices[..*indices];
        let labels = match &labels[..] {
            [] => Vec::new(),
            [one] => members.iter().map(|values| filled(&one.text, names, values)).collect(),
            [_, .., last] if labels.len() != members.len() => {
                let message = format!("{} labels for {} members", labels.len(), members.len());
                let finding = Diagnostic::error(message, last.span, "one for each, or one for all");
                self.findings.push(finding);
                return None;
            }
            all => {
                let each = all.iter().zip(&members);
                each.map(|(label, values)| filled(&label.text, names, values)).collect()
            }
        };
        Some(Drawing { form: *form, span: *span, arguments, points, colour, labels })
    }
}

/// For each member of a family with so many indices, the number of its points and its index values.
fn members_of(quantity: &Quantity, indices: usize) -> (Vec<usize>, Vec<Vec<i32>>) {
    let width = quantity.indices.len();
    let mut points: Vec<usize> = Vec::new();
    let mut members: Vec<Vec<i32>> = Vec::new();
    for member in 0..quantity.members {
        let own = &quantity.member_indices[member * width..][..indices];
        match points.last_mut() {
            Some(count) if members.last().is_some_and(|last| last == own) => *count += 1,
            _ => {
                points.push(1);
                members.push(own.to_vec());
            }
        }
    }
    (points, members)
}

/// A label with the values of its indices.
fn filled(label: &str, names: &[String], values: &[i32]) -> String {
    let mut text = label.to_string();
    for (name, value) in names.iter().zip(values) {
        text = text.replace(&format!("{{{name}}}"), &value.to_string());
    }
    text
}
