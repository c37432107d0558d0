import type { Type } from '@nestjs/common';
import { readParameters } from 'customer-authorization-service/testing-host';
import type { GuessableParameter } from './grant-kit.js';
import { wrongValues } from './text-guesses.js';
import type { Parameters } from './token-request.js';

/** Gives wrong values of a parameter that the rules of the body accept, because others are no guesses. */
export class GuessValues {
  private readonly values: Iterator<string, undefined>;

  /**
   * @param body the class whose rules accept the values; without it, values of the same format are right
   * @param issued the parameters of other requests: a grant without handles may know their values
   */
  constructor(
    private readonly guessable: GuessableParameter,
    body: Type<object> | undefined,
    parameters: Parameters,
    issued: Parameters[],
  ) {
    const { parameter, wrong } = guessable;
    const right = `${parameters[parameter]}`;
    const accepts = (value: string) => !body || isAccepted(body, { ...parameters, [parameter]: value });
    const others = new Set(issued.map((each) => `${each[parameter]}`));
    this.values = wrong ? given(right, wrong) : wrongValues(right, others, accepts);
  }

  /** @throws Error if there are fewer values */
  take(count: number): string[] {
    const values = this.takeUpTo(count);
    if (values.length === count) return values;
    const { parameter, limit } = this.guessable;
    throw new Error(
      `${parameter}: the kit finds too few wrong values for ${limit} guesses; return them by \`wrong\` of \`guessable\``,
    );
  }

  /** As `take`, or all values if there are fewer. */
  takeUpTo(count: number): string[] {
    const values: string[] = [];
    while (values.length < count) {
      const { value } = this.values.next();
      if (value === undefined) break;
      values.push(value);
    }
    return values;
  }
}

function* given(right: string, wrong: (right: string, index: number) => string): Generator<string, undefined> {
  for (let index = 0; index < 10_000; index++) yield wrong(right, index);
  return undefined;
}

/** Whether the rules of a body class accept parameters. */
export function isAccepted(body: Type<object>, parameters: Parameters): boolean {
  try {
    readParameters(body, parameters);
    return true;
  } catch {
    return false;
  }
}
