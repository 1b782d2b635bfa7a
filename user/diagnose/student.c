// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>

#include "diagnose/compare.h"

/* The normal value that is exceeded in either direction with this chance, by bisection. */
static double normal(double chance)
{
	double low = 0, high = 40;

	for (int i = 0; i < 80; i++) {
		double middle = (low + high) / 2;

		if (erfc(middle / sqrt(2)) > chance)
			low = middle;
		else
			high = middle;
	}
	return low;
}

double student_t(double chance, double n)
{
	double a, b, c, d, x, y;

	if (n < 1.5)
		return 1 / tan(chance * M_PI / 2);
	if (n < 2.5)
		return sqrt(2 / (chance * (2 - chance)) - 2);
	a = 1 / (n - 0.5);
	b = 48 / (a * a);
	c = ((20700 * a / b - 98) * a - 16) * a + 96.36;
	d = ((94.5 / (b + c) - 3) / b + 1) * sqrt(a * M_PI / 2) * n;
	x = d * chance;
	y = pow(x, 2 / n);
	if (y > 0.05 + a) {
		x = -normal(chance);
		y = x * x;
		if (n < 5)
			c += 0.3 * (n - 4.5) * (x + 0.6);
		c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c;
		y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x;
		y = expm1(a * y * y);
	} else {
		y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) +
		      0.5 / (n + 4)) * y - 1) * (n + 1) / (n + 2) + 1 / y;
	}
	return sqrt(n * y);
}
