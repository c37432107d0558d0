type Mismatch = 'the parameter must have the type that its decorator provides';

/** The index of a parameter whose type admits `Value`. For any other parameter, a type that no index has. */
type IndexFor<Method, Index extends number, Value> = Method extends (...parameters: infer Parameters) => unknown
  ? Value extends Parameters[Index]
    ? Index
    : Mismatch
  : Mismatch;

/**
 * A parameter decorator that provides a `Value`. The compiler passes the class, the method and the index of the
 * parameter as literal types, so that a parameter of another type does not compile.
 */
export type ParameterOf<Value> = <Controller extends object, Method extends keyof Controller, Index extends number>(
  controller: Controller,
  method: Method,
  index: IndexFor<Controller[Method], Index, Value>,
) => void;
