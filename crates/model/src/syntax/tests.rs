//! Tests of the reader: accepted texts, malformed texts with their findings, and robustness.

mod accepted;
mod malformed;
mod robust;

/// The three models at the beginning of the language guide.
const PENDULUM: &str = "\
# Spherical pendulum (Chang, Perlmutter, Vankerschaver 2022, sec. 2.3)
parameter m = 1
parameter g = 1
parameter l = 1

coordinate q : R^3 = (0, 1, 0)
momentum   p of q  = (1, 0, -1)

hamiltonian dot(p, p)/(2*m) + m*g*q.z
constraint  rod : dot(q, q) = l^2
integral    J = q.x*p.y - q.y*p.x
";

const CHAIN: &str = "\
# Chain of n pendula (Tao, Owhadi 2016, sec. 4.2); gravity points along -y
size n = 10
parameter g = 1
parameter L = sqrt(5)

coordinate r[i in 1..n] : R^2 = (i, -2*i)
momentum   p of r

hamiltonian sum(i in 1..n : dot(p[i], p[i])/2 + g*r[i].y)
constraint  anchor : dot(r[1], r[1]) = L^2
constraint  link[i in 2..n] : dot(r[i] - r[i-1], r[i] - r[i-1]) = L^2
";

const RIGID_BODY: &str = "\
# Free rigid body in the ambient space R^(3,3) x R^3 (Chang, Jimenez, Perlmutter 2016)
parameter I = diag(3, 2, 1)
state R : R^(3,3) = identity(3)
state w : R^3     = (1, 1, 1)

R' = R*hat(w)
w' = inverse(I)*cross(I*w, w)

constraint orthogonal : transpose(R)*R = identity(3)
integral   E  = dot(w, I*w)/2
integral   Pi = R*I*w
";
