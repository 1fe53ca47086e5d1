/** @returns the value of a metric without labels, of a service that has METRICS=on. NaN if there is none. */
export async function metric({ port }: { port: number }, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
}

/** @returns the status of `/health/ready`. */
export async function readiness({ port }: { port: number }): Promise<number> {
  return (await fetch(`http://127.0.0.1:${port}/health/ready`)).status;
}
