/**
 * What a test sets up is undone after it, the last first, and all of it even if a step fails.
 *
 * @returns a function that takes such a step.
 */
export function undoAfterEach(): (step: () => unknown) => void {
  const steps: (() => unknown)[] = [];

  afterEach(async () => {
    const failures: unknown[] = [];
    for (const step of steps.splice(0).reverse()) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, failures.map(String).join('; '));
  });

  return (step) => {
    steps.push(step);
  };
}
