import type { OpenAPIObject } from '@nestjs/swagger';

/** The methods of OpenAPI's Path Item Object; its other members are no operations. */
const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const;

/** @returns every operation of a document, with its path template and its method in lower case. */
export function operationsOf(document: OpenAPIObject) {
  return Object.entries(document.paths).flatMap(([template, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      return operation === undefined ? [] : [{ template, method, operation }];
    }),
  );
}

/** The operations of a document, found by the request that calls them. */
export class Operations {
  readonly #operations: { method: string; path: RegExp; statuses: ReadonlySet<number> }[];

  constructor(document: OpenAPIObject) {
    this.#operations = operationsOf(document).map(({ template, method, operation }) => ({
      method: method.toUpperCase(),
      path: patternOf(template),
      statuses: new Set(Object.keys(operation.responses).map(Number)),
    }));
  }

  /** The methods that any operation has. */
  get methods(): string[] {
    return [...new Set(this.#operations.map(({ method }) => method))];
  }

  /**
   * An operation answers with the statuses that the document declares. One that declares 400 alone for what a request
   * does wrong answers that; `error` tells the kinds apart.
   *
   * @param target the path of the request, with or without a query.
   * @param error the number of a failure.
   * @returns the HTTP status to answer it with.
   */
  statusOf(method: string | undefined, target: string | undefined, error: number): number {
    if (error >= 500 || method === undefined || target === undefined) return error;
    const end = target.indexOf('?');
    const path = end < 0 ? target : target.slice(0, end);
    const operation = this.#operations.find((known) => known.method === method && known.path.test(path));
    return operation === undefined || operation.statuses.has(error) ? error : 400;
  }
}

/** A path template (OpenAPI 3.1, section 4.8.8): each `{name}` stands for one or more characters other than a slash. */
function patternOf(template: string): RegExp {
  const parts = template.split(/\{[^{}]*\}/).map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^/]+')}$`);
}
