import { Ajv2020 } from 'ajv/dist/2020.js';

/** The keywords that OpenAPI 3.1 adds to those of JSON Schema (section 4.8.24). */
const VOCABULARY = ['discriminator', 'xml', 'externalDocs', 'example'];
const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

const isWithin = (bits) => (value) => value >= -(2 ** (bits - 1)) && value < 2 ** (bits - 1);
/** The formats of OpenAPI (section 4.4.1). JSON.parse rounds an int64 to a double, so this check cannot be exact. */
const FORMATS = {
  int32: { type: 'number', validate: isWithin(32) },
  int64: { type: 'number', validate: isWithin(64) },
};

/** Checks responses against an OpenAPI 3.1 document. It knows nothing else of the service. */
export class Contract {
  #document;
  #ajv = new Ajv2020({ allErrors: true, formats: FORMATS });

  /** @param document its schemas are read strictly: an unknown keyword or format is an error. */
  constructor(document) {
    this.#document = document;
    this.#ajv.addVocabulary([...VOCABULARY, ...Object.keys(document)]);
    this.#ajv.addSchema(document, 'document');
  }

  /** Every operation with its declared statuses, as `POST /plants 200`. */
  get declared() {
    return Object.entries(this.#document.paths).flatMap(([template, item]) =>
      METHODS.filter((method) => method in item).flatMap((method) =>
        Object.keys(item[method].responses).map((status) => name(method, template, status)),
      ),
    );
  }

  /** The names of all headers that the document declares, and Content-Type, in lower case. */
  get headers() {
    const operations = Object.values(this.#document.paths).flatMap((item) =>
      METHODS.map((method) => item[method]),
    );
    const responses = operations.flatMap((operation) => Object.values(operation?.responses ?? {}));
    const names = responses.flatMap((response) => Object.keys(response.headers ?? {}));
    return [...new Set(['content-type', ...names.map((header) => header.toLowerCase())])];
  }

  /**
   * @returns the template in `paths` that matches the path and has the method, the one with the fewest parameters first;
   *   undefined if there is none.
   */
  templateOf(method, path) {
    const fits = Object.keys(this.#document.paths).filter((template) => pattern(template).test(path));
    fits.sort((one, other) => one.split('{').length - other.split('{').length);
    return fits.find((template) => method in this.#document.paths[template]);
  }

  /**
   * Checks a response.
   *
   * @param response has its method and header names in lower case.
   * @returns `by`, the declared response that applies (as in `declared`), and `violations`, empty if it conforms.
   */
  judge({ method, path, status, headers, text }) {
    const template = this.templateOf(method, path);
    if (template === undefined) return { violations: [`${method} ${path} is no operation`] };
    const at = ['paths', template, method, 'responses'];
    const responses = this.#document.paths[template][method].responses;
    const key = [String(status), `${String(status)[0]}XX`, 'default'].find(
      (candidate) => candidate in responses,
    );
    if (key === undefined) return { violations: [`the status ${status} is not declared`] };
    return {
      by: name(method, template, key),
      violations: [
        ...this.#judgeHeaders(headers, responses[key].headers ?? {}, [...at, key, 'headers']),
        ...this.#judgeBody(headers['content-type'], text, responses[key].content, [...at, key, 'content']),
      ],
    };
  }

  #judgeHeaders(headers, declared, at) {
    return Object.entries(declared).flatMap(([header, { required }]) => {
      const value = headers[header.toLowerCase()];
      if (value === undefined) return required ? [`${header} is missing`] : [];
      return this.#judgeValue(header, readHeader(value, declared[header].schema), [...at, header, 'schema']);
    });
  }

  #judgeBody(contentType, text, content, at) {
    if (content === undefined) return text === '' ? [] : ['a body is not declared'];
    const type = contentType?.split(';')[0].trim().toLowerCase();
    if (!(type in content)) return [`the media type ${type} is not declared`];
    let body;
    try {
      body = JSON.parse(text);
    } catch (error) {
      return [`the body is not JSON: ${error.message}`];
    }
    return this.#judgeValue('the body', body, [...at, type, 'schema']);
  }

  #judgeValue(what, value, at) {
    const pointer = at.map((step) => encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1')));
    const validate = this.#ajv.getSchema(`document#/${pointer.join('/')}`);
    return validate(value)
      ? []
      : validate.errors.map(({ instancePath, message }) => `${what}${instancePath} ${message}`);
  }
}

const name = (method, template, status) => `${method.toUpperCase()} ${template} ${status}`;

/** A path parameter matches one segment that is not empty. */
function pattern(template) {
  const parts = template.split(/\{[^}]*\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^/?#]+')}$`);
}

/** A header is text, so a number in it is read from its digits. */
function readHeader(value, { type }) {
  return (type === 'integer' || type === 'number') && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
}
