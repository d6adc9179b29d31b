//! Dump of the syntax tree in readable form, for `holonome show syntax` and for tests.
//!
//! Statements are printed as they were written, expressions in prefix form, `(+ a (* b c))`, which
//! shows how operators were grouped. What does not fit on a line is broken and indented.

use super::ast::{
    BinaryOperator, Expr, ExprKind, File, IndexSetExpr, Name, ShapeExpr, Statement, UnaryOperator,
};
use super::statements::StatementPart;

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
    let row = statement.kind.row();
    text.push_str(row.word);
    let mut expressions: Vec<(&str, &Expr)> = Vec::new();
    let mut values = statement.values.iter();
    for part in row.parts {
        match part {
            StatementPart::Name => text.push_str(&format!(" {}", statement.name.text)),
            StatementPart::State => text.push_str(&statement.name.text),
            StatementPart::Family => {
                text.push_str(&bracketed("[", &ranges(&statement.family), "]"))
            }
            StatementPart::Indices(_) => {
                text.push_str(&bracketed("[", &joined(&statement.indices), "]"))
            }
            StatementPart::Parameters => {
                text.push_str(&bracketed("(", &joined(&statement.parameters), ")"))
            }
            StatementPart::Of(word) => {
                text.push_str(&format!(" {word} {}", statement.reference.text))
            }
            StatementPart::On => {
                text.extend(values.next().map(|on| format!(" on {}", expression(on))))
            }
            StatementPart::Moving => {
                let count = statement.values.len().saturating_sub(1);
                let moving: Vec<String> = values.by_ref().take(count).map(expression).collect();
                text.push_str(&format!(" ({})", moving.join(", ")));
            }
            StatementPart::Shape => text.push_str(&shape(&statement.shape)),
            StatementPart::Prime => text.push('\''),
            StatementPart::Equals => text.push_str(" ="),
            StatementPart::Value | StatementPart::InitialValue => {
                expressions.extend(values.next().map(|value| ("= ", value)))
            }
            StatementPart::Expression => expressions.extend(values.next().map(|value| ("", value))),
            StatementPart::Equation => {
                text.push_str(" :");
                expressions.extend(["", "= "].into_iter().zip(&mut values));
            }
            StatementPart::Statistic => {
                let over = bracketed(" [", &ranges(&statement.family), "]");
                text.push_str(&format!(" {}{over}", statement.reference.text));
                expressions.extend(values.by_ref().map(|value| ("", value)));
            }
            StatementPart::Word(words) => {
                let said = words.iter().filter(|word| statement.says(word));
                said.for_each(|word| text.push_str(&format!(" {word}")));
            }
            StatementPart::Action => {
                let said = ["stop", "record"].into_iter().filter(|word| statement.says(word));
                said.for_each(|word| text.push_str(&format!(" : {word}")));
                while let (Some(place), Some(value)) = (values.next(), values.next()) {
                    expressions.extend([("set ", place), ("-> ", value)]);
                }
            }
            StatementPart::Clauses(words) => {
                let said = words.iter().filter_map(|word| Some((*word, statement.clause(word)?)));
                expressions.extend(said);
            }
            StatementPart::Setting => {
                text.push_str(&format!(" {}", statement.name.text));
                match values.next() {
                    Some(value) => expressions.push(("= ", value)),
                    None => text.push_str(&format!(" = {}", statement.reference.text)),
                }
            }
            StatementPart::Drawing => {
                text.push_str(&format!(" {}", statement.reference.text));
                let over = statement.drawn_over.iter().map(ranges);
                text.push_str(&over.map(|over| bracketed(" [", &over, "]")).collect::<String>());
                expressions.extend(values.by_ref().map(|value| ("", value)));
                expressions.extend(statement.clauses.iter().map(|(word, value)| (*word, value)));
                for (word, said) in &statement.texts {
                    text.push_str(&format!(" {word} \"{}\"", said.text));
                }
            }
            StatementPart::Units => text.push_str(&format!(" {}", joined(&statement.words))),
            StatementPart::Path(_) => text.push_str(&format!(" \"{}\"", statement.reference.text)),
        }
    }
    text.push('\n');
    for (before, value) in expressions {
        text.push_str("  ");
        text.push_str(before);
        text.push_str(if before.ends_with(char::is_alphabetic) { " " } else { "" });
        let mut measures = Vec::new();
        measure(value, &mut measures);
        broken(value, &measures, 2, text);
        text.push('\n');
    }
}

/// A text between brackets; nothing if it is empty.
fn bracketed(open: &str, text: &str, close: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{open}{text}{close}") }
}

fn joined(names: &[Name]) -> String {
    names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(", ")
}

fn ranges(ranges: &IndexSetExpr) -> String {
    let range = |r: &super::ast::RangeExpr| {
        format!("{} in {}..{}", r.name.text, expression(&r.low), expression(&r.high))
    };
    let mut text = ranges.ranges.iter().map(range).collect::<Vec<_>>().join(", ");
    if let Some(filter) = &ranges.filter {
        text.push_str(" if ");
        text.push_str(&expression(filter));
    }
    text
}

fn shape(shape: &ShapeExpr) -> String {
    match shape {
        ShapeExpr::Scalar => " : R".to_string(),
        ShapeExpr::Vector(k) => format!(" : R^{}", expression(k)),
        ShapeExpr::Matrix(k, l) => format!(" : R^({},{})", expression(k), expression(l)),
    }
}

/// First entry in the brackets of an expression's prefix form, and its parts; no parts for a leaf.
fn parts(expr: &Expr) -> (String, Vec<&Expr>) {
    let mut parts = Vec::new();
    expr.for_each_part(&mut |part| parts.push(part));
    let head = match &expr.kind {
        ExprKind::Number(value) => format!("{value:?}").trim_end_matches(".0").to_string(),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Member(_, name) => format!(".{}", name.text),
        ExprKind::Index(..) => "index".to_string(),
        ExprKind::Call(name, _) => name.text.clone(),
        ExprKind::Rate(_, primes) => "'".repeat(*primes),
        ExprKind::Unary(UnaryOperator::Negate, _) => "-".to_string(),
        ExprKind::Unary(UnaryOperator::Not, _) => "not".to_string(),
        ExprKind::Binary(operator, ..) => symbol(*operator).to_string(),
        ExprKind::Vector(_) => "vector".to_string(),
        ExprKind::Sum(over, _) => {
            parts.drain(..parts.len() - 1); // the ends and the condition stand in the head
            format!("sum [{}]", ranges(over))
        }
    };
    (head, parts)
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
struct Extent {
    /// Number of characters on one line.
    width: usize,
    /// Number of expressions: this one and all its parts.
    count: usize,
}

/// Appends the measure of the expression and then, in order, of all its parts. Measuring once keeps
/// the dump linear: trying each part of a long sum on a line of its own would not be.
fn measure(expr: &Expr, measures: &mut Vec<Extent>) -> Extent {
    let place = measures.len();
    measures.push(Extent::default());
    let (head, parts) = parts(expr);
    let mut width = head.chars().count() + if is_leaf(expr) { 0 } else { 2 };
    for part in parts {
        width += 1 + measure(part, measures).width;
    }
    measures[place] = Extent { width, count: measures.len() - place };
    measures[place]
}

/// Writes the expression on one line if it fits, else its parts on lines of their own.
fn broken(expr: &Expr, measures: &[Extent], indent: usize, text: &mut String) {
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
