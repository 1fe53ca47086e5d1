import {
  createParamDecorator,
  Inject,
  Injectable,
  type ArgumentMetadata,
  type ExecutionContext,
  type PipeTransform,
} from '@nestjs/common';
import type { Request } from 'express';
import { CONFIG } from '../config/config.module.js';
import type { Config } from '../config/config.js';
import { MalformedJsonError, parseExactJson, type ExactObject, type ExactValue } from './exact-json.js';
import { DtoValidationPipe, memberNames } from './dto-validation.pipe.js';
import { Failure } from '../errors/failure.js';
import { continueReading } from '../connection/expectation.js';
import { BodyReader } from './request-body.js';

/** Reads and validates the JSON body. Pipes run after guards, so nothing is read without a valid token. */
@Injectable()
class JsonBodyPipe implements PipeTransform<Request> {
  readonly #reader: BodyReader;
  // Not a second pipe: what Nest does for one takes a create some 10 % more CPU.
  readonly #validation = new DtoValidationPipe();

  constructor(@Inject(CONFIG) { http }: Config) {
    this.#reader = new BodyReader(http.bodyLimit, http.bodyBudget);
  }

  async transform(request: Request, metadata: ArgumentMetadata): Promise<unknown> {
    const text = await this.#reader.readText(request, () => continueReading(request));
    return await this.#validation.transform(parse(text, metadata), metadata);
  }
}

function parse(text: string, { metatype }: ArgumentMetadata): ExactObject | ExactValue {
  try {
    return parseExactJson(text);
  } catch (error) {
    if (!(error instanceof MalformedJsonError)) throw error;
    if (error.member === undefined) throw new Failure(400, error.message);
    // The message may quote a name of the contract. Any other name is the client's own text.
    const name = memberNames(metatype).includes(error.member) ? error.member : 'A member';
    throw new Failure(400, `${name} ${error.message}`);
  }
}

const RequestItself = createParamDecorator((_: unknown, context: ExecutionContext) =>
  context.switchToHttp().getRequest<Request>(),
);

/** The JSON body of the request as an instance of the parameter's DTO class, read exactly and validated. */
export const JsonBody = () => RequestItself(JsonBodyPipe);
