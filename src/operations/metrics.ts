import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

export const METRICS = Symbol('METRICS');

/** The metrics for Prometheus. Every label has a small, fixed set of values. */
export class Metrics {
  readonly registry = new Registry();
  readonly #requests: Histogram<'method' | 'route' | 'status'>;

  constructor(readonly enabled: boolean) {
    this.#requests = new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the request to the end of its response',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers: [this.registry],
    });
    if (enabled) collectDefaultMetrics({ register: this.registry });
  }

  /** @param route the template of the route, or `unmatched`. */
  observeRequest(method: string, route: string, status: number, milliseconds: number): void {
    if (!this.enabled) return;
    const known = METHODS.has(method) ? method : 'other';
    this.#requests.observe({ method: known, route, status: String(status) }, milliseconds / 1000);
  }

  /**
   * Starts the series of an operation's responses at 0. `rate()` and `increase()` do not count the first value of a
   * series, so the first 503 would go unnoticed.
   *
   * @param template an OpenAPI path template.
   */
  expectRequests(method: string, template: string, statuses: string[]): void {
    const route = template.replaceAll(/\{([^{}]*)\}/g, ':$1');
    for (const status of statuses) this.#requests.zero({ method: method.toUpperCase(), route, status });
  }

  /** Adds a gauge that is read when Prometheus asks. */
  watch(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.set(read());
      },
    });
  }

  /** Adds a counter that is read when Prometheus asks. */
  watchTotal(name: string, help: string, read: () => number): void {
    new Counter({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
