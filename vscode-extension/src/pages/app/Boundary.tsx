/** A page that fails says so, and the others go on. */

import { Component, type ComponentChildren } from "preact";

interface Props {
  readonly children: ComponentChildren;
}

interface State {
  readonly message: string | undefined;
}

export class Boundary extends Component<Props, State> {
  override state: State = { message: undefined };

  override componentDidCatch(error: unknown): void {
    this.setState({ message: error instanceof Error ? error.message : String(error) });
  }

  override render(): ComponentChildren {
    const { message } = this.state;
    if (message === undefined) {
      return this.props.children;
    }
    return (
      <div class="failure" role="alert">
        <h3>This page failed</h3>
        <p>{message}</p>
      </div>
    );
  }
}
