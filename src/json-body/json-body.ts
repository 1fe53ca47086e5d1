import {
  createParamDecorator,
  Inject,
  Injectable,
  type ArgumentMetadata,
  type ExecutionContext,
  type PipeTransform,
  type Type,
} from '@nestjs/common';
import type { Request } from 'express';
import { CONFIG } from '../config/config.module.js';
import type { Config } from '../config/config.js';
import { MalformedJsonError, parseExactJson, type ExactObject, type ExactValue } from './exact-json.js';
import { memberNames, toDto } from './dto-validation.js';
import { Failure } from '../errors/failure.js';
import { BodyReader } from './request-body.js';

/** Reads and validates the JSON body. Pipes run after guards, so nothing is read without a valid token. */
@Injectable()
export class JsonBodyPipe implements PipeTransform<Request> {
  readonly #reader: BodyReader;

  constructor(@Inject(CONFIG) { http }: Config) {
    this.#reader = new BodyReader(http.bodyLimit, http.bodyBudget);
  }

  // One pipe for all: Nest allocates a kilobyte of promises and metadata for each pipe of a request.
  async transform(request: Request, { metatype }: ArgumentMetadata): Promise<object> {
    const text = await this.#reader.readText(request);
    return toDto(parse(text, metatype as Type<object>), metatype as Type<object>);
  }
}

function parse(text: string, metatype: Type<object>): ExactObject | ExactValue {
  try {
    return parseExactJson(text);
  } catch (error) {
    if (!(error instanceof MalformedJsonError) || error.member === undefined) throw error;
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
