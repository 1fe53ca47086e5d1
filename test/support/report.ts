/** Prints one line for a case, where Jest's console would add a stack to it. */
export function report(name: string, numbers: Record<string, string | number>): void {
  const told = Object.entries(numbers).map(([what, number]) => `${what} ${number}`);
  process.stdout.write(`Bad day: ${name}: ${told.join(', ')}\n`);
}
