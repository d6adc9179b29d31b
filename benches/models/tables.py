"""Writes the tables of bodies in this folder: `python3 benches/models/tables.py`. Astronomical units, days, solar masses.

States are barycentric; elements are about the Sun, or about the centre of mass of the bodies that are listed before.
Sources: Standish, Keplerian elements for approximate positions of the major planets (JPL, table 1), at J2000, with the
masses of the IAU; Kepler-16, after Doyle et al., Science 333 (2011) 1602; mean elements and masses of the satellites of
Jupiter by JPL, their Laplace planes taken as one plane, to which the Sun, on Jupiter's orbit, is inclined by 3.1 degrees.
"""
import csv
from math import cos, radians, sin, sqrt
from pathlib import Path

G = 2.95912208286e-4
KM = 1/149597870.7
GM = KM**3*86400.0**2/G  # solar masses of a km^3/s^2

# Name, mass; a, e, inclination, mean longitude, longitudes of the perihelion and of the ascending node, in degrees.
SOLAR_SYSTEM = [
    ("Sun", 1.0),
    ("Mercury", 1/6023600, 0.38709927, 0.20563593, 7.00497902, 252.25032350, 77.45779628, 48.33076593),
    ("Venus", 1/408523.71, 0.72333566, 0.00677672, 3.39467605, 181.97909950, 131.60246718, 76.67984255),
    ("Earth and Moon", 1/328900.56, 1.00000261, 0.01671123, -0.00001531, 100.46457166, 102.93768193, 0.0),
    ("Mars", 1/3098708, 1.52371034, 0.09339410, 1.84969142, -4.55343205, -23.94362959, 49.55953891),
    ("Jupiter", 1/1047.3486, 5.20288700, 0.04838624, 1.30439695, 34.39644051, 14.72847983, 100.47390909),
    ("Saturn", 1/3497.898, 9.53667594, 0.05386179, 2.48599187, 49.95424423, 92.59887831, 113.66242448),
    ("Uranus", 1/22902.98, 19.18916464, 0.04725744, 0.77263783, 313.23810451, 170.95427630, 74.01692503),
    ("Neptune", 1/19412.24, 30.06992276, 0.00859048, 1.77004347, -55.12002969, 44.96476227, 131.78422574),
]
CIRCUMBINARY = [
    ("Kepler-16 A", 0.6897),
    ("Kepler-16 B", 0.20255, 0.22431, 0.15944, 0.0, 92.3520, 263.464, 0.0),
    ("Kepler-16 b", 0.333/1047.3486, 0.7048, 0.00685, 0.308, 106.51, 318.0, 0.003),
]


def satellite(name, gm, a, e, inclination, pericentre, anomaly, node):
    return name, gm*GM, a*KM, e, inclination, anomaly + pericentre + node, pericentre + node, node


GALILEAN = [
    ("Jupiter", 126686531.9*GM),
    satellite("Io", 5959.916, 421800, 0.0041, 0.036, 84.129, 342.021, 43.977),
    satellite("Europa", 3202.739, 671100, 0.0094, 0.466, 88.970, 171.016, 219.106),
    satellite("Ganymede", 9887.834, 1070400, 0.0013, 0.177, 192.417, 317.540, 63.552),
    satellite("Callisto", 7179.289, 1882700, 0.0074, 0.192, 52.643, 181.408, 298.848),
    ("Sun", 1.0, 5.20288700, 0.04838624, 3.1, 34.39644051, 14.72847983, 100.47390909),
]


def kepler(mu, a, e, inclination, longitude, pericentre, node):
    """The position and the velocity of a motion of Kepler."""
    mean, omega, inclination, node = map(radians, (longitude - pericentre, pericentre - node, inclination, node))
    anomaly = mean
    for _ in range(50):
        anomaly -= (anomaly - e*sin(anomaly) - mean)/(1 - e*cos(anomaly))
    b, rate = a*sqrt(1 - e*e), sqrt(mu/a**3)/(1 - e*cos(anomaly))
    plane = (a*(cos(anomaly) - e), b*sin(anomaly)), (-a*rate*sin(anomaly), b*rate*cos(anomaly))
    return [turn(x*cos(omega) - y*sin(omega), x*sin(omega) + y*cos(omega), inclination, node) for x, y in plane]


def turn(x, y, inclination, node):
    z, y = y*sin(inclination), y*cos(inclination)
    return [x*cos(node) - y*sin(node), x*sin(node) + y*cos(node), z]


def mean(masses, states):
    return [sum(m*state[k] for m, state in zip(masses, states))/sum(masses) for k in range(6)]


def states(bodies, about):
    """The barycentric states; elements are about so many of the first bodies, or about all that are listed before."""
    masses = [body[1] for body in bodies]
    states = [[0.0]*6]
    for k, body in enumerate(bodies[1:], 1):
        centre = min(k, about)
        x, v = kepler(G*(sum(masses[:centre]) + masses[k]), *body[2:])
        states.append([a + b for a, b in zip(mean(masses[:centre], states), x + v)])
    centre = mean(masses, states)
    return [[a - b for a, b in zip(state, centre)] for state in states]


def write(name, bodies, about=100):
    with open(Path(__file__).parent/f"{name}.csv", "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow("mass,x,y,z,vx,vy,vz".split(","))
        for body, state in zip(bodies, states(bodies, about)):
            table.writerow([repr(body[1]), *map(repr, state)])


write("solar-system", SOLAR_SYSTEM, about=1)
write("circumbinary", CIRCUMBINARY)
write("galilean", GALILEAN)
