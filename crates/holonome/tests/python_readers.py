"""Opens a stored run as its users do, with zarr-python and xarray, and compares it with what was written.

Usage: python_readers.py RUN EXPECTED, where EXPECTED is the JSON that python_readers.rs wrote.
"""

import json
import sys
import warnings

import numpy as np
import xarray as xr
import zarr

# A reader that has to warn is disturbed; only the deliberate one below is allowed.
warnings.simplefilter("error")


def padded(values, shape):
    """The stored samples, and NaN for those that were not reached."""
    stored = np.array(values, dtype="float64")
    full = np.full(shape, np.nan)
    rows = stored.size // max(1, int(np.prod(shape[1:])))
    full[:rows] = stored.reshape((rows, *shape[1:]))
    return full


def attributes_of(attrs):
    """The attributes without the checksum of the arrays' metadata, which tests in Rust compute anew."""
    attributes = json.loads(json.dumps(dict(attrs)))
    attributes["holonome_checksums"] = json.loads(attributes["holonome_checksums"])
    of_arrays = attributes["holonome_checksums"].pop("(arrays)")
    assert len(of_arrays) == 8 and int(of_arrays, 16) >= 0, of_arrays
    return attributes


def check_zarr(group, expected):
    assert attributes_of(group.attrs) == expected["attributes"], dict(group.attrs)
    names = set(expected["variables"]) | set(expected["coordinates"])
    assert set(group.array_keys()) == names, set(group.array_keys())
    for name, variable in expected["variables"].items():
        array = group[name]
        assert array.dtype == "<f8" and list(array.shape) == variable["shape"], (name, array)
        assert list(array.metadata.dimension_names) == variable["dimensions"], name
        # Bytes, not numbers: the sign of a zero and the bits of NaN count.
        assert array[...].tobytes() == padded(variable["values"], variable["shape"]).tobytes(), name


def check_xarray(dataset, expected):
    assert attributes_of(dataset.attrs) == expected["attributes"], dataset.attrs
    assert set(dataset.data_vars) == set(expected["variables"]), dataset
    assert set(dataset.coords) == set(expected["coordinates"]), dataset
    for name, variable in expected["variables"].items():
        array = dataset[name]
        assert list(array.dims) == variable["dimensions"] and list(array.shape) == variable["shape"], (name, array)
        assert array.attrs["long_name"] == variable["description"], array.attrs
        np.testing.assert_array_equal(array.values, padded(variable["values"], variable["shape"]))
    for name, coordinate in expected["coordinates"].items():
        array = dataset[name]
        text = array.dtype.kind in "TUO"
        assert ("text" if text else str(array.dtype)) == coordinate["type"], (name, array.dtype)
        assert list(array.dims) == [coordinate["dimension"]], (name, array.dims)
        np.testing.assert_array_equal(array.values, coordinate["values"])


def check_labels(dataset):
    """Selection by label, which is what the coordinates are for."""
    row = dataset["r"].sel(i=3, component_3="y")
    np.testing.assert_array_equal(row.values, dataset["r"].values[:, 1, 1])
    at = dataset["q"].sel(time_=0.25)
    np.testing.assert_array_equal(at.values, dataset["q"].values[1])
    assert dataset["rod"].where(dataset["rod_j"] == 3, drop=True).sizes["rod_"] == 2


def main(run, expected_file):
    with open(expected_file, encoding="utf-8") as file:
        expected = json.load(file)
    check_zarr(zarr.open_group(run, mode="r"), expected)
    check_zarr(zarr.open_consolidated(run, mode="r", zarr_format=3), expected)
    with xr.open_zarr(run, chunks=None) as dataset:
        check_xarray(dataset, expected)
        check_labels(dataset)
    with xr.open_dataset(run, engine="zarr", consolidated=True) as dataset:
        check_xarray(dataset.load(), expected)
    with warnings.catch_warnings():
        # Without the consolidated metadata zarr-python lists the folder and remarks on our small files.
        warnings.filterwarnings("ignore", message="Object at .* is not recognized")
        check_zarr(zarr.open_group(run, mode="r", use_consolidated=False), expected)
        with xr.open_zarr(run, chunks=None, consolidated=False) as dataset:
            check_xarray(dataset, expected)
    print("zarr", zarr.__version__, "and xarray", xr.__version__, "agree")


main(*sys.argv[1:])
