# SPDX-License-Identifier: GPL-3.0-or-later
# Finds each library with pkg-config; an absent one is named together with the Debian package that brings it.
find_package(Threads REQUIRED)
find_package(PkgConfig)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "pkg-config is missing: apt-get install pkg-config")
endif()

function(gpgtar_need target module package)
  string(MAKE_C_IDENTIFIER "${module}" id)
  pkg_check_modules(${id} QUIET IMPORTED_TARGET GLOBAL "${module}")
  if(NOT ${id}_FOUND)
    message(FATAL_ERROR "${module} is missing: apt-get install ${package}")
  endif()
  add_library(${target} ALIAS PkgConfig::${id})
endfunction()

gpgtar_need(GpgError::GpgError "gpg-error>=1.46" libgpg-error-dev)
gpgtar_need(Gcrypt::Gcrypt "libgcrypt>=1.10" libgcrypt20-dev)
gpgtar_need(LibArchive::LibArchive "libarchive>=3.6" libarchive-dev)
gpgtar_need(Zlib::Zlib zlib zlib1g-dev)
gpgtar_need(Assuan::Assuan "libassuan>=2.5" libassuan-dev)

# bzip2 and cmocka ship no reliable pkg-config file everywhere: look for header and library.
find_path(BZIP2_INCLUDE bzlib.h)
find_library(BZIP2_LIBRARY bz2)
if(NOT BZIP2_INCLUDE OR NOT BZIP2_LIBRARY)
  message(FATAL_ERROR "bzip2 is missing: apt-get install libbz2-dev")
endif()
add_library(Bzip2::Bzip2 INTERFACE IMPORTED GLOBAL)
target_link_libraries(Bzip2::Bzip2 INTERFACE ${BZIP2_LIBRARY})
target_include_directories(Bzip2::Bzip2 INTERFACE ${BZIP2_INCLUDE})

# ISA-L makes deflate several times faster; zlib does the same work without it.
pkg_check_modules(isal QUIET IMPORTED_TARGET GLOBAL libisal)
if(isal_FOUND)
  message(STATUS "ISA-L: ${isal_VERSION}")
else()
  message(STATUS "ISA-L not found, zlib compresses: apt-get install libisal-dev for more speed")
endif()
