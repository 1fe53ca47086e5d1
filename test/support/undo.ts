/**
 * Registers an `afterEach` that undoes what a test set up: the last step first, and all steps even if one fails.
 *
 * @returns a function that adds a step.
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
