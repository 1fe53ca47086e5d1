/** Prints one line of measured numbers. Jest's console would add a stack to it. */
export function report(name: string, numbers: Record<string, string | number>): void {
  const measured = Object.entries(numbers).map(([what, number]) => `${what} ${number}`);
  process.stdout.write(`Measured: ${name}: ${measured.join(', ')}\n`);
}
