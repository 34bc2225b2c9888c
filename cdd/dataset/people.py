"""Files for people, of the last version that changed more than rows: meta/sizes.json, storage.json and
attributes.json. Nothing reads them."""

import json
from typing import Any

from cdd.dataset import extents as ex
from cdd.dataset.directory import Directory
from cdd.dataset.state import State, path_of


def texts(state: State) -> dict[str, str]:
    """What the three files say of a state, by their names."""
    sizes: dict[str, Any] = {"version": state.number, "tables": {}}
    storage: dict[str, Any] = {"version": state.number, "tables": {}}
    attributes: dict[str, Any] = {"version": state.number, "dataset": state.attrs, "tables": {}}
    for name, table in state.tables.items():
        columns = table.columns.items()
        shapes = {path_of(name, key): [table.rows, *column.row_shape] for key, column in columns}
        sizes["tables"][name] = {"rows": table.rows, "shapes": shapes}
        storage["tables"][name] = {
            "clock": table.clock,
            "order": table.order,
            "columns": {
                path_of(name, key): {
                    "dtype": str(column.dtype),
                    "row_shape": list(column.row_shape),
                    "options": column.options,
                    "superchunks": len(ex.numbers(column.extents)),
                    "extents": len(column.extents),
                }
                for key, column in columns
            },
        }
        own = {path_of(name, key): column.attrs for key, column in columns if column.attrs}
        if table.attrs or own:
            attributes["tables"][name] = {"table": table.attrs, "columns": own}
    made = {"sizes": sizes, "storage": storage, "attributes": attributes}
    return {name: json.dumps(value, indent=1) + "\n" for name, value in made.items()}


def write_for_people(directory: Directory, state: State) -> None:
    for name, text in texts(state).items():
        directory.put_hint(f"meta/{name}.json", text.encode())
