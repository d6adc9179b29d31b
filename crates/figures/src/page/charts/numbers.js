// Numbers of charts as texts.

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function power(exponent) {
  return `10${String(exponent).replace("-", "⁻").replace(/\d/g, (digit) => RAISED[digit])}`;
}

// A number as mantissa and exponent, 1.5×10⁻⁷; a mantissa of 1 is left out.
function withPower(mantissa, exponent) {
  const size = Math.abs(mantissa), sign = mantissa < 0 ? "−" : "";
  return size === 1 ? sign + power(exponent) : `${sign}${size}×${power(exponent)}`;
}

// True if a number is written with its power of ten.
function needsPower(exponent) { return exponent < -3 || exponent > 5; }

// A number with so many significant digits: 0.25, −1.5×10⁻⁷.
function readable(x, digits) {
  if (Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const [mantissa, exponent] = x.toExponential(digits - 1).split("e").map(Number);
  if (x === 0 || !needsPower(exponent)) return String(Number(x.toPrecision(digits))).replace("-", "−");
  return withPower(mantissa, exponent);
}
