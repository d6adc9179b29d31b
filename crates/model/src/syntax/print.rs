//! Dump of the syntax tree in readable form, for `holonome show syntax` and for tests.
//!
//! Statements are printed as they were written, expressions in prefix form, `(+ a (* b c))`, which
//! shows how operators were grouped. What does not fit on a line is broken and indented.

use super::ast::{
    BinaryOperator, Expr, ExprKind, File, Name, Ranges, ShapeExpr, Statement, StatementKind,
    UnaryOperator,
};

/// Longest line before an expression is broken.
const WIDTH: usize = 100;

/// Deepest indentation. Sums of a thousand terms would leave the page otherwise.
const DEEPEST: usize = 40;

/// The whole tree, one statement after the other.
pub fn dump(file: &File) -> String {
    let mut text = String::new();
    for statement in &file.statements {
        dump_statement(statement, &mut text);
    }
    text
}

/// An expression on one line.
pub fn expression(expr: &Expr) -> String {
    let mut text = String::new();
    flat(expr, &mut text);
    text
}

fn dump_statement(statement: &Statement, text: &mut String) {
    use StatementKind::*;
    let (head, values): (String, Vec<(&str, &Expr)>) = match &statement.kind {
        Parameter { name, family, value } => {
            (declared("parameter", name, family), vec![("= ", value)])
        }
        Size { name, value } => (format!("size {}", name.text), vec![("= ", value)]),
        Coordinate { name, family, shape, value } => (
            declared("coordinate", name, family) + &shown(shape),
            value.iter().map(|value| ("= ", value)).collect(),
        ),
        State { name, family, shape, value } => (
            declared("state", name, family) + &shown(shape),
            value.iter().map(|value| ("= ", value)).collect(),
        ),
        Momentum { name, indices, of, value } => (
            conjugate("momentum", name, indices, of),
            value.iter().map(|value| ("= ", value)).collect(),
        ),
        Velocity { name, indices, of, value } => (
            conjugate("velocity", name, indices, of),
            value.iter().map(|value| ("= ", value)).collect(),
        ),
        Hamiltonian { value, .. } => ("hamiltonian".to_string(), vec![("", value)]),
        Constraint { name, family, left, right } => {
            (declared("constraint", name, family) + " :", vec![("", left), ("= ", right)])
        }
        Integral { name, family, value } => {
            (declared("integral", name, family), vec![("= ", value)])
        }
        Derivative { name, indices, value } => {
            (format!("{}{}'", name.text, listed(indices)), vec![("= ", value)])
        }
        Let { name, family, parameters, value } => {
            let parameters = if parameters.is_empty() {
                String::new()
            } else {
                format!("({})", joined(parameters))
            };
            (declared("let", name, family) + &parameters, vec![("= ", value)])
        }
        Observe { name, family, value } => (declared("observe", name, family), vec![("= ", value)]),
        Measure { name, statistic, over, values, every, from } => {
            let over =
                if over.ranges.is_empty() { String::new() } else { format!(" [{}]", ranges(over)) };
            let values = values.iter().map(|value| ("", value));
            let every = every.iter().map(|value| ("every ", value));
            let from = from.iter().map(|value| ("from ", value));
            let head = format!("measure {} = {}{over}", name.text, statistic.text);
            (head, values.chain(every).chain(from).collect())
        }
        Table { name, path } => (format!("table {} = \"{}\"", name.text, path.text), vec![]),
        Include { path } => (format!("include \"{}\"", path.text), vec![]),
    };
    text.push_str(&head);
    text.push('\n');
    for (before, value) in values {
        text.push_str("  ");
        text.push_str(before);
        let mut measures = Vec::new();
        measure(value, &mut measures);
        broken(value, &measures, 2, text);
        text.push('\n');
    }
}

fn declared(word: &str, name: &Name, family: &Ranges) -> String {
    match family.ranges.is_empty() {
        true => format!("{word} {}", name.text),
        false => format!("{word} {}[{}]", name.text, ranges(family)),
    }
}

fn conjugate(word: &str, name: &Name, indices: &[Name], of: &Name) -> String {
    format!("{word} {}{} of {}", name.text, listed(indices), of.text)
}

fn listed(indices: &[Name]) -> String {
    if indices.is_empty() { String::new() } else { format!("[{}]", joined(indices)) }
}

fn joined(names: &[Name]) -> String {
    names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(", ")
}

fn ranges(ranges: &Ranges) -> String {
    let range = |r: &super::ast::IndexRange| {
        format!("{} in {}..{}", r.name.text, expression(&r.low), expression(&r.high))
    };
    let mut text = ranges.ranges.iter().map(range).collect::<Vec<_>>().join(", ");
    if let Some(filter) = &ranges.filter {
        text.push_str(" if ");
        text.push_str(&expression(filter));
    }
    text
}

fn shown(shape: &ShapeExpr) -> String {
    match shape {
        ShapeExpr::Scalar => " : R".to_string(),
        ShapeExpr::Vector(k) => format!(" : R^{}", expression(k)),
        ShapeExpr::Matrix(k, l) => format!(" : R^({},{})", expression(k), expression(l)),
    }
}

/// First entry in the brackets of an expression's prefix form, and its parts; no parts for a leaf.
fn parts(expr: &Expr) -> (String, Vec<&Expr>) {
    match &expr.kind {
        ExprKind::Number(value) => {
            (format!("{value:?}").trim_end_matches(".0").to_string(), vec![])
        }
        ExprKind::Name(name) => (name.clone(), vec![]),
        ExprKind::Member(of, name) => (format!(".{}", name.text), vec![of]),
        ExprKind::Index(of, indices) => {
            ("index".to_string(), std::iter::once(&**of).chain(indices).collect())
        }
        ExprKind::Call(name, arguments) => (name.text.clone(), arguments.iter().collect()),
        ExprKind::Unary(UnaryOperator::Negate, operand) => ("-".to_string(), vec![operand]),
        ExprKind::Unary(UnaryOperator::Not, operand) => ("not".to_string(), vec![operand]),
        ExprKind::Binary(operator, _, left, right) => {
            (symbol(*operator).to_string(), vec![left, right])
        }
        ExprKind::Vector(entries) => ("vector".to_string(), entries.iter().collect()),
        ExprKind::Sum(over, body) => (format!("sum [{}]", ranges(over)), vec![body]),
    }
}

fn symbol(operator: BinaryOperator) -> &'static str {
    match operator {
        BinaryOperator::Add => "+",
        BinaryOperator::Subtract => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Power => "^",
        BinaryOperator::Less => "<",
        BinaryOperator::LessEqual => "<=",
        BinaryOperator::Greater => ">",
        BinaryOperator::GreaterEqual => ">=",
        BinaryOperator::Equal => "==",
        BinaryOperator::NotEqual => "!=",
        BinaryOperator::And => "and",
        BinaryOperator::Or => "or",
    }
}

fn is_leaf(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Number(_) | ExprKind::Name(_))
}

/// Writes the expression on one line.
fn flat(expr: &Expr, text: &mut String) {
    let (head, parts) = parts(expr);
    if is_leaf(expr) {
        text.push_str(&head);
        return;
    }
    text.push('(');
    text.push_str(&head);
    for part in parts {
        text.push(' ');
        flat(part, text);
    }
    text.push(')');
}

/// Extent of an expression.
#[derive(Clone, Copy, Default)]
struct Measure {
    /// Number of characters on one line.
    width: usize,
    /// Number of expressions: this one and all its parts.
    count: usize,
}

/// Appends the measure of the expression and then, in order, of all its parts. Measuring once keeps
/// the dump linear: trying each part of a long sum on a line of its own would not be.
fn measure(expr: &Expr, measures: &mut Vec<Measure>) -> Measure {
    let place = measures.len();
    measures.push(Measure::default());
    let (head, parts) = parts(expr);
    let mut width = head.chars().count() + if is_leaf(expr) { 0 } else { 2 };
    for part in parts {
        width += 1 + measure(part, measures).width;
    }
    measures[place] = Measure { width, count: measures.len() - place };
    measures[place]
}

/// Writes the expression on one line if it fits, else its parts on lines of their own.
fn broken(expr: &Expr, measures: &[Measure], indent: usize, text: &mut String) {
    if indent + measures[0].width <= WIDTH || is_leaf(expr) {
        return flat(expr, text);
    }
    let (head, parts) = parts(expr);
    let indent = (indent + 2).min(DEEPEST);
    let mut measures = &measures[1..];
    text.push('(');
    text.push_str(&head);
    for part in parts {
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', indent));
        broken(part, measures, indent, text);
        measures = &measures[measures[0].count..];
    }
    text.push(')');
}
